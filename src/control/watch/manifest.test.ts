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

describe('parsing a manifest', () => {
  it('returns the objects of all documents in order, with their lines', () => {
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
  ])('finds the position of %j, or that of the nearest parent', (path, line, column) => {
    expect(objects(route)[0]?.placeOf(path)).toEqual({ line, column })
  })

  it('splits lists into their items and keeps the positions', () => {
    const list = objects(
      'kind: List\nitems:\n  - kind: A\n    spec: {x: 1}\n  - kind: B\n    spec: {}\n',
    )
    expect(list.map(({ value }) => (value as { kind: string }).kind)).toEqual(['A', 'B'])
    expect(list[1]?.place).toEqual({ line: 5, column: 5 })
    expect(list[0]?.placeOf('spec.x')).toEqual({ line: 4, column: 12 })
  })

  it('reads JSON, even if it is indented with tabs', () => {
    const list = objects('{\n\t"kind": "Service",\n\t"spec": {\n\t\t"ports": [80]\n\t}\n}\n')
    expect(list[0]?.value).toEqual({ kind: 'Service', spec: { ports: [80] } })
    expect(list[0]?.placeOf('spec.ports[0]')).toEqual({ line: 4, column: 13 })
  })

  it('reports values with YAML tags that no field can hold', () => {
    const list = objects(
      'kind: List\nitems:\n  - kind: A\n    data: {a: !!str 1, b: !mine x}\n  - kind: B\n    a/b: [0, !!binary aGk=]\n    s: !!set {x, y}\n',
    )
    const problem = (path: string, tag: string) => ({
      path,
      message: `has the YAML tag !!${tag}, which stands for what no field can hold; write the value without it`,
    })
    expect(list.map(({ problems = [] }) => problems)).toEqual([
      [],
      [problem('["a/b"][1]', 'binary'), problem('s', 'set')],
    ])
    expect(list[0]?.value).toMatchObject({ data: { a: '1', b: 'x' } })
  })

  it('keeps times, quoted numbers and words such as off as text', () => {
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
  ])('refuses the whole file %j and reports the line', (text, line) => {
    expect(parse(text)[0]).toMatchObject({ severity: 'error', file: 'a.yaml', line })
  })

  it('does not repeat the content of a broken file in errors', () => {
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

  it.each([
    ['lists', '[x]', (aliases: string) => `[${aliases}]`],
    ['merges', '{x: y}', (aliases: string) => `{<<: [${aliases}]}`],
  ])('refuses aliases in %s that grow exponentially', (_, seed, levelOf) => {
    const bomb = [`a0: &a0 ${seed}`]
    for (let level = 1; level < 9; level++) {
      const previous = Array.from({ length: 10 }, () => `*a${level - 1}`).join(', ')
      bomb.push(`a${level}: &a${level} ${levelOf(previous)}`)
    }
    expect(parse(bomb.join('\n'))[0]).toMatchObject({ message: 'has too many aliases' })
  })

  it('supports merge keys as kubectl does, but not recursive ones', () => {
    const [object] = objects('a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\n')
    expect(object?.value).toEqual({ a: { x: 1, y: 2 }, b: { x: 1, y: 3 } })
    expect(object?.placeOf('b.x')).toEqual({ line: 2, column: 1 })
    expect(parse('a: &a {<<: *a}\n')[0]).toMatchObject({ message: 'has too many aliases' })
  })

  it('reads several JSON objects in one file, each with its position', () => {
    const list = objects('{"kind": "A", "b": "}"}\n\n{\n  "kind": "B"}\n')
    expect(list.map(({ value }) => (value as { kind: string }).kind)).toEqual(['A', 'B'])
    expect(list[1]?.placeOf('kind')).toEqual({ line: 4, column: 3 })
    expect(parse('{"kind": "A"}\n{"kind": }\n}')[0]).toMatchObject({ line: 2 })
  })

  it('reads UTF-16 with a byte order mark, and reports the line of invalid text', () => {
    const bytes = Buffer.from('\uFEFFkind: Grüße\n', 'utf16le')
    for (const content of [bytes, Buffer.from(bytes).swap16()]) {
      expect(parseManifest(content, 'a.yaml')).toMatchObject({
        value: [{ value: { kind: 'Grüße' } }],
      })
    }
    for (const [text, message] of [
      ['kind: A\nname: caf\xe9\n', 'not text in UTF-8'],
      ['kind: A\nname: \0\n', 'not text: it holds a NUL character'],
    ] as const) {
      expect(parseManifest(Buffer.from(text, 'latin1'), 'a.yaml')).toMatchObject({
        problems: [{ reason: 'syntax', line: 2, message }],
      })
    }
  })

  it('reports template placeholders and excessive nesting', () => {
    expect(parse('metadata:\n  name: {{ .Release.Name }}\n')).toMatchObject([
      { line: 2, column: 10, message: expect.stringContaining('template') },
    ])
    const message = 'not read: nested deeper than 256 levels'
    for (const text of [
      `a: ${'['.repeat(200_000)}`,
      `${'{"a":\n'.repeat(60_000)}1${'}'.repeat(60_000)}`,
      `${'- '.repeat(100_000)}a\n`,
      `${'? '.repeat(100_000)}a\n`,
      Array.from({ length: 1_000 }, (_, level) => `${' '.repeat(level)}a:\n`).join(''),
    ]) {
      expect(parse(`kind: A\n---\n${text}`)).toMatchObject([
        { message, line: expect.toSatisfy((line: number) => line >= 3 && line < 300) },
      ])
    }
    expect(parse(`a: ${'['.repeat(100)}${']'.repeat(100)}\n`)[0]).not.toHaveProperty('message')
  })
})
