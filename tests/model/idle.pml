/* Model of an idle CPU's last look for queues, against CPUs that queue a thread behind a running one
 * (sched/idle.c: idle_loop(); sched/pull.c: pull_worth_a_look(), idle_pull(), pull_offer(), call_one()).
 *
 * CPU 0 goes idle and comes back; CPUs 1.. are busy for good, and each queues a thread behind what it runs, EVENTS times in all.
 * Either the queuer sees CPU 0's bit in the idle mask and calls it, or CPU 0 sees the queue: so at the end, when nobody
 * queues any more and CPU 0 has halted, no thread waits.
 *
 * model                      source
 * bit_set                    board_idle(c, true): the bit, with a full barrier
 * the look before the halt   if (!looked && pull_worth_a_look(c)) schedule()
 * looked                     the look that ran nothing is not repeated at once, so that the loop ends
 * ran a thread, blocks       schedule() from the thread: put_previous(), pick_next() looks once more, back in the idle loop
 * publish, fence, read mask  pull_offer()
 * take_bit                   call_one(): whoever clears the bit calls; need_resched, and an interrupt if it does not poll
 *
 * MUTANT: 1 `looked` is kept although the look has run a thread   2 no look between the bit and the halt
 *         3 the queuer reads the mask before it publishes         4 the bit is set after the look */
#ifndef MUTANT
#define MUTANT 0
#endif
#define EVENTS 3
#define QUEUERS 2

byte waiting;        /* threads queued behind running ones, on all the busy CPUs together */
bool bit_set;        /* CPU 0 in the idle mask */
bool need_resched;   /* CPU 0 is called */
bool halted;         /* CPU 0 waits for an interrupt, which need_resched brings */
byte events = EVENTS, queuing = QUEUERS;

/* One try to pull, under the victim's lock: ran tells whether there was something. */
inline pull(ran) {
    atomic {
        if
        :: waiting > 0 -> waiting--; ran = true
        :: else -> ran = false
        fi
    }
}

/* schedule() from the idle loop: what is pulled runs, with the bit cleared, and blocks; then the CPU looks before it is idle. */
inline schedule(ever) {
    ever = false;
    pull(got);
    do
    :: got -> ever = true; bit_set = false; pull(got)
    :: else -> break
    od
}

active proctype idle_cpu()
{
    bool looked, got, ever;

    do
    :: true ->
#if MUTANT != 4
        bit_set = true;
#endif
#if MUTANT != 2
        if
        :: !looked && waiting > 0 ->
            schedule(ever);
#if MUTANT == 1
            looked = true;
#else
            looked = !ever;
#endif
            goto again
        :: else
        fi;
#endif
#if MUTANT == 4
        bit_set = true;
#endif
        looked = false;
        halted = true;
end:    need_resched;
        atomic { halted = false; need_resched = false };
        bit_set = false;
        schedule(ever);
again:  skip
    od
}

active [QUEUERS] proctype queuer()
{
    bool seen;

    do
    :: atomic { events > 0 -> events-- };
#if MUTANT == 3
        seen = bit_set;
        waiting++;
#else
        waiting++;
        seen = bit_set;
#endif
        if
        :: seen ->
            atomic { /* take_bit */
                if
                :: bit_set -> bit_set = false; need_resched = true
                :: else /* another has called it: it looks at every queue */
                fi
            }
        :: else
        fi;
        seen = false
    :: events == 0 -> break
    od;
    atomic { queuing--; seen = false }
}

/* Whenever all is over: nobody waits beside a CPU that has halted for good. */
active proctype end_of_all()
{
    atomic { queuing == 0 && halted && !need_resched -> assert(waiting == 0) }
}
