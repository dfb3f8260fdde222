"""Programs as graphs."""

import networkx as nx
import pytest
from golden.load import dumps, load

from fluidx.ir import Program
from fluidx.ir.roles import OpRole
from fluidx.ir.views import ancestors, block_tree, components, data_flow, dot, variables

TEXT = """
block 0 {
  data x : float32[2]
  var  a : float32[2]
  var  b : float32[2]
  var  c : float32[2]
  relu(X=x) -> (Out=a)
  scale(X=a) -> (Out=b)
  scale(X=x) -> (Out=a)
  elementwise_add(X=a, Y=b) -> (Out=c)
  relu(X=x) -> (Out=x)
}
"""


@pytest.fixture
def block():
    return Program.from_text(TEXT).global_block()


def edges(graph, block, kind):
    place = {op: i for i, op in enumerate(block.ops)}
    return {
        (place[a], place[b]): data[kind]
        for a, b, data in graph.edges(data=True)
        if data[kind]
    }


def test_data_flow(block):
    graph = data_flow(block)
    assert list(graph) == block.ops
    assert list(block.program.graph()) == block.ops
    assert edges(graph, block, "flow") == {(0, 1): {"a"}, (1, 3): {"b"}, (2, 3): {"a"}}
    # op 2 overwrites what op 1 read and op 0 wrote; op 4 what ops 0 and 2 read
    assert edges(graph, block, "order") == {
        (0, 2): {"a"},
        (1, 2): {"a"},
        (0, 4): {"x"},
        (2, 4): {"x"},
    }
    node = graph.nodes[block.ops[3]]
    assert (node["index"], node["type"]) == (3, "elementwise_add")
    assert (node["reads"], node["writes"]) == ({"a": 2, "b": 1}, {"c": 1})
    assert graph.nodes[block.ops[4]]["reads"] == {"x": 0}


def test_any_order_of_the_graph_gives_the_same_values(block):
    graph = data_flow(block)
    for order in nx.all_topological_sorts(graph):
        version, seen = {}, {}
        for op in order:
            seen[op] = {n: version.get(n, 0) for n in graph.nodes[op]["reads"]}
            version |= graph.nodes[op]["writes"]
        assert seen == {op: graph.nodes[op]["reads"] for op in order}


def test_ancestors(block):
    first, second, _, fourth, _ = block.ops
    assert ancestors(block, [second]) == [first, second]
    assert ancestors(block, [fourth]) == block.ops[:4]
    assert ancestors(block, []) == []


def test_ancestors_of_a_golden():
    program = load(dict(dumps("local/lr_exponential_adagrad"))["main"])
    block = program.global_block()
    updates = [op for op in block.ops if op.type == "adagrad"]
    rate = updates[0].input("LearningRate")[0]
    made = [op for op in block.ops if rate in op.output_arg_names]
    schedule = ancestors(block, made)
    assert schedule[0].type == "increment"
    assert all(op.role & OpRole.LRSched for op in schedule)


def test_sub_blocks_count():
    program = load(dict(dumps("local/while_net"))["main"])
    block = program.global_block()
    graph = data_flow(block)
    loop = next(op for op in block.ops if op.type == "while")
    assert nx.ancestors(graph, loop) == set(block.ops[:4])


def test_variables(block):
    graph = variables(block)
    assert nx.is_bipartite(graph)
    assert {n for n, side in graph.nodes(data="bipartite") if side == 0} == set("xabc")
    assert list(graph.predecessors(block.ops[3])) == ["a", "b"]
    assert graph.edges["a", block.ops[3]]["slots"] == ["X"]
    assert graph.edges[block.ops[3], "c"]["slots"] == ["Out"]


def test_block_tree():
    program = load(dict(dumps("local/cond_net"))["main"])
    tree = block_tree(program)
    assert nx.is_arborescence(tree)
    assert sorted(tree.edges) == [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert tree.edges[0, 1]["op"].type == "conditional_block"
    assert tree.nodes[1]["ops"] == len(program.block(1).ops)


def test_components_are_optimize_groups():
    program = load(dict(dumps("local/reg_per_param"))["main"])
    block = program.global_block()
    ops = [op for op in block.ops if op.role & OpRole.Optimize and op.role_var]
    groups = components(ops)
    # one per parameter, though all read the same learning rate
    params = [{op.role_var[0] for op in group} for group in groups]
    assert all(len(p) == 1 for p in params)
    assert len({min(p) for p in params}) == len(groups) > 2
    assert {op for group in groups for op in group} == set(ops)


def test_components_apart(block):
    assert components(block.ops[:4]) == [block.ops[:4]]
    assert components(block.ops[:3], apart=["a"]) == [[op] for op in block.ops[:3]]


def test_dot(block):
    text = dot(data_flow(block), 'a "name"')
    assert text.splitlines()[:3] == [
        'digraph "a \\"name\\"" {',
        '  n0 [label="relu", shape=box];',
        '  n1 [label="scale", shape=box];',
    ]
    assert '  n0 -> n1 [label="a"];' in text
    assert '  n1 -> n2 [label="a", style=dashed];' in text
    assert 'label="x", shape=ellipse' in dot(variables(block))
    assert dot(block_tree(block.program)).count("->") == 0
