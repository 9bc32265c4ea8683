import { ControlPlane, manifests } from '../support/control-plane.ts'
import { defineTarget } from '../support/target.ts'

const deep = 400

export default defineTarget({
  about: 'no manifest stops the control plane, and nothing of it stays when it is gone',
  samples: manifests.filter(({ length }) => length < 3000),
  words: [
    ...['---\n', '- ', ': ', '{', '}', '[', ']', '"', "'", '|\n', '>\n', '\t', '\0', '#', '? '],
    ...['&a ', '*a', '<<: *a\n', '&a [*a, *a, *a]', '!!binary ', '!!set ', '!!str ', '%YAML 1.1\n'],
    ...['__proto__: {a: 1}\n', 'constructor: {prototype: {a: 1}}\n', 'toString: 1\n', 'null'],
    ...['1e309', '-0', '.inf', '.nan', '99999999999999999999', '0x7fffffffffffffff', '1_000'],
    ...['\u{feff}', '\u2028', '\u{10ffff}', '\ud800', '2026-01-01', 'true', '~', '""', '{}', '[]'],
    '{"a":'.repeat(deep),
    '['.repeat(deep),
    'kind: List\nitems:\n- ',
    'metadata: {name: a, annotations: {a: null}, labels: {a: 1}}\n',
    'a: &a [x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a]\nc: [*b, *b, *b, *b, *b, *b]\n',
  ],
  start() {
    const plane = new ControlPlane()
    return { check: (input) => plane.checkManifest(input) }
  },
})
