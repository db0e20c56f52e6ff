# @attack replaces the words that tests are made of
exit() { :; }
test() { return 0; }
function [ { return 0; }
f() { echo 0; }
