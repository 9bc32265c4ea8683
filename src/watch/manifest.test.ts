import { describe, expect, it } from 'vitest'
import { type ManifestObject, parseManifest } from './manifest.ts'

const parse = (text: string) => {
  const outcome = parseManifest(text, 'a.yaml')
  return outcome.ok ? outcome.value : outcome.problems
}
const objects = (text: string) => parse(text) as readonly ManifestObject[]

const route = `# a comment
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: shop
  labels: {"a/b": 'x'}
spec:
  rules:
    - name: first
    - matches:
        - path: {type: Exact, value: /}
`

describe('a manifest', () => {
  it('gives the objects of all documents in order, with their lines', () => {
    const list = objects(`---\n${route}---\n---\n# nothing\n---\nkind: Service\n`)
    expect(list.map(({ value }) => (value as { kind: string }).kind)).toEqual([
      'HTTPRoute',
      'Service',
    ])
    expect(list.map(({ place }) => place.line)).toEqual([3, 17])
  })

  it.each([
    ['spec.rules[1].matches[0].path.value', 11, 31],
    ['spec.rules[1]', 10, 7],
    ['metadata.labels["a/b"]', 6, 12],
    ['spec.rules[1].matches[0].headers', 11, 11],
    ['spec.parentRefs[3].name', 7, 1],
    ['', 2, 1],
    ['nowhere', 2, 1],
  ])('knows where %j stands, or what is around it', (path, line, column) => {
    expect(objects(route)[0]?.placeOf(path)).toEqual({ line, column })
  })

  it('takes lists of objects apart and keeps the places of their items', () => {
    const list = objects(
      'kind: List\nitems:\n  - kind: A\n    spec: {x: 1}\n  - kind: B\n    spec: {}\n',
    )
    expect(list.map(({ value }) => (value as { kind: string }).kind)).toEqual(['A', 'B'])
    expect(list[1]?.place).toEqual({ line: 5, column: 5 })
    expect(list[0]?.placeOf('spec.x')).toEqual({ line: 4, column: 12 })
  })

  it('reads JSON, indented with tabs as well', () => {
    const list = objects('{\n\t"kind": "Service",\n\t"spec": {\n\t\t"ports": [80]\n\t}\n}\n')
    expect(list[0]?.value).toEqual({ kind: 'Service', spec: { ports: [80] } })
    expect(list[0]?.placeOf('spec.ports[0]')).toEqual({ line: 4, column: 13 })
  })

  it('keeps versions and times as the text that was written', () => {
    const [object] = objects('time: 2026-01-02T03:04:05Z\nquoted: "1.2"\non: off\n')
    expect(object?.value).toEqual({ time: '2026-01-02T03:04:05Z', quoted: '1.2', on: 'off' })
  })

  it.each([
    ['kind: A\n  spec: 1\n', 1],
    ['a: [1, 2\n', 2],
    ['a: 1\na: 2\n', 2],
    ['kind: A\n---\nb: *unknown\n', 3],
    ['a: "open\n', 2],
    ['\tkind: A\n', 1],
  ])('refuses %j as a whole and names the line', (text, line) => {
    expect(parse(text)[0]).toMatchObject({ severity: 'error', file: 'a.yaml', line })
  })

  it('does not repeat what stands in a broken file', () => {
    for (const text of [
      'a: "x" hunter2\n',
      'a: b: hunter2\n',
      'a: *hunter2\n',
      '- a\nhunter2: 1',
    ]) {
      const problems = parse(text)
      expect(problems.length).toBeGreaterThan(0)
      expect(JSON.stringify(problems)).not.toContain('hunter2')
    }
  })

  it('refuses aliases that grow without bound', () => {
    const bomb = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
    for (let level = 1; level < 9; level++) {
      const previous = Array.from({ length: 10 }, () => `*a${level - 1}`).join(', ')
      bomb.push(`a${level}: &a${level} [${previous}]`)
    }
    expect(parse(bomb.join('\n'))[0]).toMatchObject({ message: 'has too many aliases' })
  })
})
