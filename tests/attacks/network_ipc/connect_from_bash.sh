# @attack connects by the shell's own /dev/tcp
# @expect held
# @arguments $PORT
if (exec 9<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then echo ESCAPED; else echo held; fi
