# @attack ends with a text as its code
# @expect exit
raise SystemExit("not a number")
