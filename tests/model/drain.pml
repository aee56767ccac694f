/* Model of the drain: sched/policies/drain.h (drain_pass), sched/balance.c (snapshot, carry_out).
 *
 * Threads that neither block nor wake, any distribution of K of them over NC CPUs.  A pass looks at a copy of the loads,
 * plans at most NC moves, each counted at once in the copy, and carries them out one by one.
 *
 * Checked:
 *   - every pass that moves something lowers the sum of |load_i - load_j| over all pairs (so passes come to an end: the argument of
 *     "Work conservation", HotOS'17);
 *   - after a round of passes of all CPUs, in any order, no CPU is idle while another has a waiting thread (K <= 2 NC: one
 *     pass is enough to empty the queue, whatever the cap);
 *   - nothing is lost: the loads add up to K.
 * With -DOVERLAP the passes of different CPUs interleave between the copy and each move; then each move is looked at again under
 * the locks (RECHECK) and must still help.
 *
 * MUTANT: 1 own moves not counted in the copy   2 load counts the queue only   3 moves on a difference of one
 *         4 (OVERLAP) moves not looked at again */
#ifndef MUTANT
#define MUTANT 0
#endif
#define NC 3
#define K 6

byte load[NC];
byte done;
byte pot_before;

#define diff(a, b) (load[a] > load[b] -> load[a] - load[b] : load[b] - load[a])
#define potential (diff(0, 1) + diff(0, 2) + diff(1, 2))
#if MUTANT == 2
#define key(x) (x > 0 -> x - 1 : 0)
#else
#define key(x) (x)
#endif
#if MUTANT == 3
#define helps(there, here) (key(there) < key(here))
#else
#define helps(there, here) (key(there) + 1 < key(here))
#endif

/* to becomes one of the least loaded CPUs in copy, c left out. */
inline least(c) {
    if
    :: c != 0 && (c == 1 || key(copy[0]) <= key(copy[1])) && (c == 2 || key(copy[0]) <= key(copy[2])) -> to = 0
    :: c != 1 && (c == 0 || key(copy[1]) <= key(copy[0])) && (c == 2 || key(copy[1]) <= key(copy[2])) -> to = 1
    :: c != 2 && (c == 0 || key(copy[2]) <= key(copy[0])) && (c == 1 || key(copy[2]) <= key(copy[1])) -> to = 2
    fi
}

inline plan_pass(c) {
    copy[0] = load[0];
    copy[1] = load[1];
    copy[2] = load[2];
    queued = (load[c] > 0 -> load[c] - 1 : 0);
    moves = 0;
    do
    :: moves < NC && queued > 0 ->
        least(c);
        if
        :: helps(copy[to], copy[c]) ->
            target[moves] = to;
            moves++;
            queued--;
#if MUTANT != 1
            copy[to] = copy[to] + 1;
            copy[c] = copy[c] - 1
#endif
        :: else -> break
        fi
    :: else -> break
    od
}

inline move(c, m) {
    if
#ifdef OVERLAP
    :: load[c] < 2 -> skip /* gone: the thread left meanwhile */
#if MUTANT != 4
    :: load[c] >= 2 && !helps(load[target[m]], load[c]) -> skip /* no gain any more */
#endif
#endif
    :: else ->
#ifdef OVERLAP
        pot_before = potential;
#endif
        load[c] = load[c] - 1;
        load[target[m]] = load[target[m]] + 1
#ifdef OVERLAP
        ; assert(potential < pot_before)
#endif
    fi
}

proctype cpu(byte c)
{
    byte copy[NC], target[NC];
    byte to, queued, moves, m;

#ifdef OVERLAP
    atomic { plan_pass(c) };
    do
    :: m < moves -> atomic { move(c, m); m++ }
    :: else -> break
    od;
#else
    atomic { /* staggered: passes do not overlap */
        plan_pass(c);
        pot_before = potential;
        do
        :: m < moves -> move(c, m); m++
        :: else -> break
        od;
        assert(moves == 0 || potential < pot_before)
    };
#endif
    done++
}

#define idle(c) (load[c] == 0)
#define waits(c) (load[c] > 1)

init {
    byte i = 0;

    atomic {
        do
        :: i < K ->
            if
            :: load[0]++
            :: load[1]++
            :: load[2]++
            :: skip /* fewer than K */
            fi;
            i++
        :: else -> break
        od;
        i = load[0] + load[1] + load[2];
        run cpu(0);
        run cpu(1);
        run cpu(2)
    };
    done == NC;
    assert(load[0] + load[1] + load[2] == i);
#ifndef OVERLAP
    assert(!(idle(0) || idle(1) || idle(2)) || !(waits(0) || waits(1) || waits(2)))
#endif
}
