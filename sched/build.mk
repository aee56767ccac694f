# sched: threads, run queues, wakeups, balancing.
KERNEL_SRCS += sched/runq.c sched/switch.c sched/wake.c sched/board.c sched/balance.c sched/pull.c \
    sched/policy_call.c sched/policy_watch.c sched/policy_record.c sched/idle.c sched/park.c sched/quota.c sched/delivered.c sched/sample.c sched/timer.c sched/waitq.c sched/softwork.c \
    sched/thread.c sched/attributes.c sched/init.c
