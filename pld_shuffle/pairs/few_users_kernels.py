"""The compiled loop of `few_users`. It takes arrays and scalars and checks nothing."""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, check-untyped-defs=False

from __future__ import annotations

from ..numerics.compiled import kernel


@kernel(
    "i 2 f f f f k1 1 1 1 k1 1 1 1p o1p o1p",
    lambda n, weight, top, low, high, place_error, u_start, *rest: 2e-7 * n * u_start[-1],
)
def positive_parts(
    n, weight, top, low, high, place_error, u_start, u_gap, u_mass, u_moment, v_start, v_gap, v_mass, expm1_eps,
    total, size
):  # fmt: skip
    """total[i] = sum over l + r <= n of weight[l, r] E(l top - D_l + r - s (l + r low + C_r))_+, s = 1 + growth[i].

    D_l has its atoms at u_gap[u_start[l] : u_start[l + 1]], ascending, with prefix sums of masses and of moments; C_r
    atoms of mass v_mass at v_gap. Places are `place_error` (relative, with its side's sign) larger than given, and
    `high` is the largest v. size[i] is the same sum without what U takes off: rounding is relative to it.
    """
    for i in range(expm1_eps.shape[0]):
        s = 1.0 + expm1_eps[i]
        found = 0.0
        spent = 0.0
        for left in range(n + 1):
            first = u_start[left]
            last = u_start[left + 1]
            for right in range(n + 1 - left):
                share = weight[left, right]
                if share == 0.0:
                    continue
                place = left * ((top - 1.0) - expm1_eps[i]) + right * ((1.0 - low) - expm1_eps[i] * low)
                place += place_error * (left * top + right + s * (left + right * high))
                k = last
                part = 0.0
                whole = 0.0
                for j in range(v_start[right], v_start[right + 1]):
                    reach = place - s * v_gap[j]
                    while k > first and u_gap[k - 1] >= reach:
                        k -= 1
                    if k == first:
                        break
                    bulk = reach * u_mass[k - 1]
                    part += v_mass[j] * (bulk - u_moment[k - 1])
                    whole += v_mass[j] * bulk
                found += share * part
                spent += share * whole
        total[i] = found
        size[i] = spent
