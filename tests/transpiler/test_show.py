"""A distributed program as text, drawing and page; the page in a real browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest
from distributed.fluid_cluster import Net

import fluidx as fluid
from fluidx.transpiler import distribute
from fluidx.transpiler.links import links
from fluidx.transpiler.roles import MODES
from fluidx.transpiler.show import dot, op_at, program_dot, summary
from fluidx.transpiler.show_html import facts, page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next((b for b in map(shutil.which, BROWSERS) if b), None)
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium here (Debian: apt-get install chromium)"
)


def made(kind="dense", mode="pserver", optimizer="sgd", **sizes):
    net = Net(kind, optimizer)
    return distribute(net.main, net.startup, mode, **sizes)


# ------------------------------------------------------------------ links


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_every_link_has_two_ends_that_fit(kind, mode):
    cluster = made(kind, mode)
    found = links(cluster.programs)
    if mode != "single-process-multi-thread" and mode != "nccl2":
        assert found
    for link in found:
        source, target = op_at(cluster, link.source), op_at(cluster, link.target)
        assert link.source.role != link.target.role
        if link.kind == "send":
            assert source.type == "send"
            assert link.target.role.startswith("pserver")
        elif link.kind == "recv":
            assert target.type == "recv"
            assert link.name in source.output_arg_names
        elif link.kind == "ring":
            assert source.type == target.type
            assert source.input("X") == target.input("X") == [link.name]


def test_sends_meet_the_block_that_takes_them():
    cluster = made()
    sends = [n for n in links(cluster.programs) if n.kind == "send"]
    assert len(sends) == 2 * 5  # five slices, two trainers
    for link in sends:
        taker = op_at(cluster, link.target)
        assert taker.type == "sum"
        assert link.name in taker.input("X")
    assert {n.size for n in sends} == {4 * n for n in (30 * 300, 300, 1200, 4)}


def test_runtime_split_sends_are_known_too():
    cluster = made(mode="async-split")
    sends = [n for n in links(cluster.programs) if n.kind == "send"]
    assert sorted(n.size for n in sends)[-4:] == [36000] * 4
    assert {op_at(cluster, n.target).type for n in sends} == {"sgd"}


# ------------------------------------------------------------------ text


def test_summary():
    text = summary(made())
    assert text.startswith("2 trainers, 2 servers: trainer-0 29 ops")
    assert re.search(
        r"send +fc_1\.w_0@GRAD\.trainer_1 +trainer-1 op 15 send -> "
        r"pserver-0 block 3 op 0 sum +4,800 bytes",
        text,
    )
    assert "messages in a step: 28" in text
    assert "messages at the start: 14" in text


def test_dot():
    text = dot(made())
    nodes = set(re.findall(r"^ +(r\d+b\d+o\d+) \[label", text, re.M))
    edges = re.findall(r"^ +(r\w+) -> (r\w+) ", text, re.M)
    assert len(nodes) == sum(
        len(b.ops) for p in made().programs.values() for b in p["main"].blocks
    )
    assert {n for pair in edges for n in pair} <= nodes
    assert text.count("{") == text.count("}")
    across = [1 for a, b in edges if a.split("b")[0] != b.split("b")[0]]
    assert len(across) == 28


def test_dot_of_one_program():
    program = made().programs["trainer-0"]["main"]
    text = program_dot(program, 'a "name"')
    assert text.startswith('digraph "a \\"name\\"" {')
    assert 'b0o0 -> b0o1 [label="fc_0.tmp_0"]' in text


# ------------------------------------------------------------------ page


def data_of(text):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text)
    return json.loads(found[1])


def test_page_stands_alone():
    text = page(made(), "net")
    outside = re.findall(r"""(?:src|href)\s*=|@import|url\(\s*['"]?(?!#)""", text)
    assert outside == []
    # the only address in it names the drawing's vocabulary
    addresses = set(re.findall(r"https?://[\w./]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}


def test_nothing_in_the_data_ends_its_element():
    cluster = made()
    op = cluster.programs["trainer-0"]["main"].global_block().ops[0]
    op.attrs["op_namescope"] = "/</script><b>/"
    text = page(cluster, "<i>title</i>")
    assert "</script><b>" not in text
    assert "<i>title</i>" not in text
    assert (
        "</script><b>"
        in data_of(text)["roles"][0]["programs"]["main"][0]["ops"][0]["line"]
    )


def test_facts():
    found = facts(made())
    assert [r["name"] for r in found["roles"]] == [
        "trainer-0", "trainer-1", "pserver-0", "pserver-1",
    ]  # fmt: skip
    assert found["roles"][2]["endpoint"] == "127.0.0.1:6174"
    servers = {s["name"]: s["held"] for s in found["servers"]}
    assert servers == {"pserver-0": 42000, "pserver-1": 36016}
    blocks = found["roles"][2]["programs"]["main"]
    assert blocks[2]["title"] == "block 2: updates fc_0.w_0.block1"
    assert found["cost"][0]["payload"] == 2 * 4 * 19504


def test_before_and_after():
    ((_, rows), _) = facts(made())["diff"]
    tags = [row[0] for row in rows]
    # 5 ops updated nothing but the rate; four updates went to the servers
    gone = [row[1].split("(")[0] for row in rows if row[0] == "-"]
    came = [row[1].split("(")[0] for row in rows if row[0] == "+"]
    assert gone == ["sgd"] * 4
    assert came.count("send") == 4
    assert came.count("recv") == 4
    assert sorted(set(came)) == [
        "concat", "fetch_barrier", "recv", "send", "send_barrier", "split_byref",
    ]  # fmt: skip
    changed = [row for row in rows if row[0] == "~"]
    assert all("@GRAD.trainer_0" in row[3] for row in changed)
    assert tags.count("~") == 3  # gradients that are sent whole carry the trainer


def test_many_roles_begin_with_some():
    found = facts(made(trainers=5, pservers=3))
    assert found["shown"] == [
        "trainer-0", "trainer-1", "pserver-0", "pserver-1", "pserver-2",
    ]  # fmt: skip
    assert len(found["roles"]) == 8


# ------------------------------------------------------------------ in a browser


def opened(tmp_path, text, actions="", hash_=""):
    """The page's elements after it has drawn itself and `actions` ran in it."""
    file = tmp_path / "cluster.html"
    script = f"<script>{actions}</script></body>" if actions else "</body>"
    file.write_text(text.replace("</body>", script), "utf-8")
    done = subprocess.run(
        [
            BROWSER,
            *("--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *("--window-size=1600,1000", "--virtual-time-budget=5000"),
            f"--user-data-dir={tmp_path / 'profile'}",
            f"{file.as_uri()}{hash_}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


def lines_of(dom):
    svg = re.search(r'<svg class="lines".*?</svg>', dom, re.S)[0]
    return re.findall(r'<path d="M[^"]*" class="([^"]*)"', svg)


@needs_browser
class TestBrowser:
    def test_it_draws_all_roles(self, tmp_path):
        dom = opened(tmp_path, page(made(), "net"))
        assert 'data-ready="yes"' in dom
        assert re.findall(r'class="col" data-role="([^"]+)"', dom) == [
            "trainer-0", "trainer-1", "pserver-0", "pserver-1",
        ]  # fmt: skip
        rows = re.findall(r'<li class="op ([a-z]+)[^>]*data-ref="([^"]+)"', dom)
        count = sum(
            len(b.ops) for p in made().programs.values() for b in p["main"].blocks
        )
        assert len(rows) == count
        by_word = {word for word, _ in rows}
        assert by_word == {"forward", "backward", "optimize", "rpc", "dist"}
        assert lines_of(dom) == []  # none before an op is chosen

    def test_choosing_a_send_shows_both_ends(self, tmp_path):
        dom = opened(tmp_path, page(made(), "net"), hash_="#op=trainer-0|main|0|21")
        assert lines_of(dom) == ["send on", "send on"]
        peers = re.findall(r'<li class="op [a-z]+ peer"[^>]*data-ref="([^"]+)"', dom)
        assert peers == ["pserver-0|main|2|0", "pserver-1|main|1|0"]
        panel = html.unescape(
            re.search(r'<aside id="details".*?</aside>', dom, re.S)[0]
        )
        assert "→ pserver-1 block 1 op 0 sum" in panel
        assert "36,000 bytes" in panel
        assert "fluid_cluster.py" in panel  # the user's line

    def test_keys(self, tmp_path):
        keys = """
            const press = (key, at) => (at || document.activeElement).dispatchEvent(
              new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
            press("ArrowDown", document.body);
            press("ArrowDown"); press("ArrowDown"); press("ArrowRight");
            const where = document.activeElement.dataset.ref;
            press("Enter");
            const chosen = state.chosen;
            choose("trainer-1|main|0|13"); press("g");
            document.body.dataset.seen = [where, chosen, state.chosen].join(" ");
        """
        dom = opened(tmp_path, page(made(), "net"), keys)
        seen = re.search(r'data-seen="([^"]*)"', dom)[1].split()
        assert seen[0] == seen[1] == "trainer-1|main|0|1"
        assert seen[2] == "pserver-1|main|2|0"

    def test_search_and_filter(self, tmp_path):
        dom = opened(tmp_path, page(made(), "net"), hash_="#find=fc_1.b_0@GRAD")
        count = int(re.search(r'id="count"[^>]*>(\d+) match', dom)[1])
        assert count == len(re.findall(r'class="op [a-z]+ hit"', dom)) > 4
        dom = opened(
            tmp_path,
            page(made(), "net"),
            """[...document.querySelectorAll("#chips button")]
               .find((b) => b.textContent === "only ops with messages").click()""",
        )
        rows = re.findall(r'<li class="op ([a-z]+)[^>]*data-ref="([^"]+)"', dom)
        ends = {
            "|".join(map(str, p))
            for n in links(made().programs)
            for p in (n.source, n.target)
            if p.program == "main"
        }
        assert {ref for _, ref in rows} == ends

    def test_other_tabs(self, tmp_path):
        dom = opened(tmp_path, page(made(), "net"), hash_="#tab=servers")
        servers = re.search(
            r'<div id="servers".*?</div></main>|<div id="servers".*', dom, re.S
        )[0]
        assert "42,000 bytes" in servers
        assert "fc_0.w_0.block1" in servers
        dom = opened(tmp_path, page(made(), "net"), hash_="#tab=diff")
        assert "4 went, 3 changed" in dom
        assert "<mark>fc_1.b_0@GRAD.trainer_0</mark>" in dom
        dom = opened(tmp_path, page(made(), "net"), hash_="#tab=messages")
        assert "42 messages" in dom

    def test_themes(self, tmp_path):
        for theme, colour in (
            ("dark", "rgb(18, 21, 26)"),
            ("light", "rgb(246, 247, 249)"),
        ):
            script = (
                "document.body.dataset.back = "
                "getComputedStyle(document.body).backgroundColor"
            )
            dom = opened(tmp_path, page(made(), "n"), script, f"#theme={theme}")
            assert f'data-back="{colour}"' in dom

    def test_a_thousand_ops_are_folded(self, tmp_path):
        x, h = fluid.data("x", [None, 16]), None
        h = x
        for _ in range(330):
            h = fluid.layers.fc(h, 16, act="tanh", bias_attr=False)
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(h))
        pair = fluid.default_main_program(), fluid.default_startup_program()
        assert len(pair[0].global_block().ops) > 1000
        text = page(distribute(*pair), "deep")
        dom = opened(tmp_path, text, hash_="#op=trainer-0|main|0|1500")
        assert 'data-ready="yes"' in dom
        folded = re.findall(r'class="part forward"[^>]*aria-expanded="false"', dom)
        assert len(folded) >= 2
        trainer = re.search(r'data-role="trainer-0".*?</section>', dom, re.S)[0]
        assert "661 ops" in trainer
        # what is asked for is unfolded
        assert 'class="op backward chosen"' in dom
