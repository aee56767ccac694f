#include "core/mm/vmtree.h"

#include "core/base/hash.h"

static u64 max3(u64 a, u64 b, u64 c)
{
    u64 m = MAX(a, b);
    return MAX(m, c);
}

static void update(struct mapping *m)
{
    const struct mapping *l = m->left, *r = m->right;
    m->min_start = l != NULL ? l->min_start : m->start;
    m->max_end = r != NULL ? r->max_end : m->end;
    u64 below = l != NULL ? max3(l->max_gap, m->start - l->max_end, 0) : 0;
    u64 above = r != NULL ? max3(r->max_gap, r->min_start - m->end, 0) : 0;
    m->max_gap = MAX(below, above);
}

static void update_up(struct mapping *m)
{
    for (; m != NULL; m = m->parent) {
        update(m);
    }
}

static void replace_child(struct vmtree *t, struct mapping *parent, struct mapping *old,
                          struct mapping *new)
{
    if (parent == NULL) {
        t->root = new;
    } else if (parent->left == old) {
        parent->left = new;
    } else {
        parent->right = new;
    }
    if (new != NULL) {
        new->parent = parent;
    }
}

/* Makes m the parent of its parent. */
static void rotate_up(struct vmtree *t, struct mapping *m)
{
    struct mapping *p = m->parent;
    replace_child(t, p->parent, p, m);
    struct mapping *inner = p->left == m ? m->right : m->left;
    if (p->left == m) {
        p->left = inner;
        m->right = p;
    } else {
        p->right = inner;
        m->left = p;
    }
    if (inner != NULL) {
        inner->parent = p;
    }
    p->parent = m;
    update(p);
    update(m);
}

void vmtree_insert(struct vmtree *t, struct mapping *m)
{
    struct mapping *parent = NULL, **link = &t->root;
    while (*link != NULL) {
        parent = *link;
        link = m->start < parent->start ? &parent->left : &parent->right;
    }
    *link = m;
    m->parent = parent;
    m->left = m->right = NULL;
    m->priority = mix64(++t->seed);
    update_up(m);
    while (m->parent != NULL && m->parent->priority < m->priority) {
        rotate_up(t, m);
    }
    t->count++;
}

void vmtree_remove(struct vmtree *t, struct mapping *m)
{
    while (m->left != NULL || m->right != NULL) {
        struct mapping *up = m->left;
        if (up == NULL || (m->right != NULL && m->right->priority > up->priority)) {
            up = m->right;
        }
        rotate_up(t, up);
    }
    struct mapping *parent = m->parent;
    replace_child(t, parent, m, NULL);
    update_up(parent);
    t->count--;
}

void vmtree_resize(struct mapping *m, u64 start, u64 end)
{
    m->start = start;
    m->end = end;
    update_up(m);
}

struct mapping *vmtree_at_or_above(const struct vmtree *t, u64 addr)
{
    struct mapping *best = NULL, *m = t->root;
    while (m != NULL) {
        if (m->end > addr) {
            best = m;
            m = m->left;
        } else {
            m = m->right;
        }
    }
    return best;
}

struct mapping *vmtree_next(const struct mapping *m)
{
    struct mapping *n = m->right;
    if (n != NULL) {
        while (n->left != NULL) {
            n = n->left;
        }
        return n;
    }
    for (n = m->parent; n != NULL && n->right == m; n = n->parent) {
        m = n;
    }
    return n;
}

struct mapping *vmtree_prev(const struct mapping *m)
{
    struct mapping *n = m->left;
    if (n != NULL) {
        while (n->right != NULL) {
            n = n->right;
        }
        return n;
    }
    for (n = m->parent; n != NULL && n->left == m; n = n->parent) {
        m = n;
    }
    return n;
}

u64 vmtree_find_gap(const struct vmtree *t, u64 lo, u64 hi, u64 len)
{
    const struct mapping *m = t->root;
    if (len == 0 || len > hi - lo) {
        return 0;
    }
    if (m == NULL || hi - m->max_end >= len) {
        return hi - len;
    }
    if (m->max_gap < len) {
        return m->min_start - lo >= len ? m->min_start - len : 0;
    }
    /* Invariant: a gap of len lies strictly inside m's subtree. */
    for (;;) {
        const struct mapping *l = m->left, *r = m->right;
        if (r != NULL && r->max_gap >= len) {
            m = r;
        } else if (r != NULL && r->min_start - m->end >= len) {
            return r->min_start - len;
        } else if (m->start - l->max_end >=
                   len) { /* the gap must be on the left, so there is a left */
            return m->start - len;
        } else {
            m = l;
        }
    }
}
