# @attack forks without end, in a shell
# @expect process_limit | cpu_limit | wall_limit | ok | exit
# @limits processes=32 cpu=1000 wall=2000
bomb() { bomb | bomb & }
bomb
