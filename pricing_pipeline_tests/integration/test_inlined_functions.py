"""A function that says it is inlined becomes part of the queries that call it."""

from __future__ import annotations

from pricing_pipeline_tests.fixtures.core import Core


def test_what_says_that_it_is_inlined_is(core: Core) -> None:
    """PostgreSQL says nothing where it does not: a body less stable than its function, an aggregate, a FROM.

    A call takes some microseconds then, which were a third of the time of storing a bar.
    """
    functions = core.rows(
        "SELECT proname AS name, proretset AS gives_rows, proargtypes::oid[]::regtype[]::text[] AS types FROM pg_proc"
        " WHERE pronamespace = 'pricing'::regnamespace AND prosrc LIKE '%so that it is inlined%'"
    )
    assert len(functions) > 20
    called = []
    for function in functions:
        core.rows("DROP TABLE IF EXISTS public.given")
        columns = [f"a{place} {kind}" for place, kind in enumerate(function.types)]
        core.rows(f"CREATE TABLE public.given ({', '.join(columns)})")
        call = f"pricing.{function.name}({', '.join(f'g.a{place}' for place in range(len(columns)))})"
        query = (
            f"SELECT f.* FROM public.given g, {call} f" if function.gives_rows else f"SELECT {call} FROM public.given g"
        )
        plan = [line for (line,) in core.rows(f"EXPLAIN (VERBOSE) {query}")]
        called += [function.name for line in plan if f"pricing.{function.name}(" in line]
    assert called == []
