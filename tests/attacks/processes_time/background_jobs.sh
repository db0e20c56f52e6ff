# @attack leaves jobs in the background of a shell
# @expect held
trap '' TERM HUP INT
for i in 1 2 3 4 5; do (trap '' TERM HUP; sleep 1000) & done
disown -a
echo held
