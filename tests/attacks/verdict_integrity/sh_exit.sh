# @attack ends well before the tests
f() { echo 0; }
exit 0
