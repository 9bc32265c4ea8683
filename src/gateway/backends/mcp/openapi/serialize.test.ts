/**
 * Arguments in requests, read back by a reader that knows only the tables of OpenAPI 3, and by the URL parser of
 * the platform, as servers do.
 */

import { describe, expect, it } from 'vitest'
import fc from '../../../../../test/support/fast-check.ts'
import { writeBody } from './body.ts'
import { compileDocument } from './operations.ts'
import { requestOf } from './request.ts'
import { ArgumentProblem } from './serialize.ts'

interface Parameter {
  readonly name: string
  readonly in: string
  readonly style?: string
  readonly explode?: boolean
  readonly allowReserved?: boolean
}

function planOf(path: string, parameters: readonly Parameter[]) {
  const operation = {
    operationId: 'op',
    parameters: parameters.map((one) => ({ ...one, schema: {} })),
  }
  const document = { openapi: '3.0.3', info: {}, paths: { [path]: { get: operation } } }
  const tool = compileDocument({ document }, 't').tools.get('op')
  if (tool === undefined) throw new Error('no tool')
  return tool.plan
}

const write = (path: string, parameter: Parameter, value: unknown) =>
  requestOf(planOf(path, [parameter]), { [parameter.in]: { [parameter.name]: value } }, () => 'b')

// Tables of OpenAPI 3, "Style Examples" -----------------------------------------------------------

const list = ['blue', 'black', 'brown']
const object = { R: 100, G: 200, B: 150 }

describe('parameters are written as the tables of OpenAPI say', () => {
  it.each([
    ['simple', false, 'blue', 'blue,black,brown', 'R,100,G,200,B,150'],
    ['simple', true, 'blue', 'blue,black,brown', 'R=100,G=200,B=150'],
    ['label', false, '.blue', '.blue,black,brown', '.R,100,G,200,B,150'],
    ['label', true, '.blue', '.blue.black.brown', '.R=100.G=200.B=150'],
    ['matrix', false, ';color=blue', ';color=blue,black,brown', ';color=R,100,G,200,B,150'],
    ['matrix', true, ';color=blue', ';color=blue;color=black;color=brown', ';R=100;G=200;B=150'],
  ])('path, %s, explode %s', (style, explode, ...wanted) => {
    const parameter = { name: 'color', in: 'path', style, explode }
    const found = ['blue', list, object].map((one) => write('/a/{color}', parameter, one).path)
    expect(found).toEqual(wanted.map((one) => `/a/${one}`))
  })

  it.each([
    ['form', true, 'color=blue', 'color=blue&color=black&color=brown', 'R=100&G=200&B=150'],
    ['form', false, 'color=blue', 'color=blue,black,brown', 'color=R,100,G,200,B,150'],
    [
      'spaceDelimited',
      false,
      'color=blue',
      'color=blue%20black%20brown',
      'color=R%20100%20G%20200%20B%20150',
    ],
    [
      'pipeDelimited',
      false,
      'color=blue',
      'color=blue%7Cblack%7Cbrown',
      'color=R%7C100%7CG%7C200%7CB%7C150',
    ],
    [
      'spaceDelimited',
      undefined,
      'color=blue',
      'color=blue%20black%20brown',
      'color=R%20100%20G%20200%20B%20150',
    ],
    [
      'deepObject',
      true,
      'color=blue',
      'color=blue&color=black&color=brown',
      'color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150',
    ],
  ])('query, %s, explode %s', (style, explode, ...wanted) => {
    const parameter = {
      name: 'color',
      in: 'query',
      style,
      ...(explode !== undefined && { explode }),
    }
    const found = ['blue', list, object].map((one) => write('/a', parameter, one).path)
    expect(found).toEqual(wanted.map((one) => `/a?${one}`))
  })

  it('headers and cookies', () => {
    const header = (explode: boolean, value: unknown) =>
      write('/a', { name: 'X-Color', in: 'header', explode }, value).headers
    expect(header(false, list)).toEqual([['x-color', 'blue,black,brown']])
    expect(header(true, object)).toEqual([['x-color', 'R=100,G=200,B=150']])
    const cookie = { name: 'color', in: 'cookie' }
    expect(write('/a', cookie, 'a;b=c').headers).toEqual([['cookie', 'color=a%3Bb%3Dc']])
  })
})

// Hostile values: CVE-2026-29791, CVE-2026-32871, CVE-2026-124726, CVE-2026-61462 ------------------

const climbing = [
  '..',
  '.',
  '%2e%2e',
  '%252e%252e',
  '.%2e',
  'a/../b',
  '../../etc/passwd',
  'a\\..\\b',
  '..;x',
  '..%2f',
  '..%5c',
  '%2e%2e%2f',
  '',
  'a\r\nx: y',
  'a\0b',
  '%0d%0ax',
]

describe('CVE-2026-29791, CVE-2026-32871, CVE-2026-124726, CVE-2026-61462: a path argument', () => {
  it.each(climbing)('that may climb is refused: %j', (value) => {
    const simple = { name: 'id', in: 'path' }
    for (const parameter of [simple, { ...simple, style: 'matrix' }]) {
      expect(() => write('/a/{id}/b', parameter, value)).toThrow(ArgumentProblem)
    }
    expect(() => write('/a/{id}/b', simple, ['x', value])).toThrow(ArgumentProblem)
  })

  it('of several in a segment cannot make a dot segment together', () => {
    const plan = planOf('/a/{x}{y}/b', [
      { name: 'x', in: 'path' },
      { name: 'y', in: 'path' },
    ])
    for (const [x, y] of [
      ['.', '.'],
      ['%2', 'e.'],
    ]) {
      expect(() => requestOf(plan, { path: { x, y } }, () => 'b')).toThrow(ArgumentProblem)
    }
  })

  it.each(['a/b', ';x', '?x', '#x', 'a b', 'ü', '...', '{id}'])(
    'stays in its segment: %j',
    (value) => {
      const { path } = write('/a/{id}/b', { name: 'id', in: 'path' }, value)
      const url = new URL(`http://host${path}`)
      expect(url.pathname.split('/')).toHaveLength(4)
      expect(decodeURIComponent(url.pathname.split('/')[2] ?? '')).toBe(value)
      expect([url.search, url.hash]).toEqual(['', ''])
    },
  )
})

describe('other arguments', () => {
  it.each(['a\r\nx-evil: 1', 'a\nb', 'a\0', ' a', 'ü', ''])('a header is refused: %j', (value) => {
    expect(() => write('/a', { name: 'X-A', in: 'header' }, value)).toThrow(ArgumentProblem)
  })

  it('cannot set headers of the connection, of credentials or of the gateway', () => {
    const names = [
      'Host',
      'Authorization',
      'Content-Length',
      'Transfer-Encoding',
      'Cookie',
      'X-Forwarded-For',
      'MCP-Session-Id',
      'X-Api-Key',
      'Bad Name',
    ]
    const parameters = names.map((name) => ({ name, in: 'header', schema: {} }))
    const document = {
      openapi: '3.1.0',
      paths: { '/': { get: { operationId: 'op', parameters } } },
      components: { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-API-Key' } } },
    }
    const plan = compileDocument({ document }, 't').tools.get('op')?.plan
    expect(plan?.parameters).toEqual([])
    expect(() => requestOf(plan as never, { header: { Host: 'x' } }, () => 'b')).toThrow('header')
  })

  it('that are not described are refused', () => {
    const plan = planOf('/a', [{ name: 'q', in: 'query' }])
    for (const args of [
      { query: { admin: true } },
      { body: {} },
      { path: { q: 1 } },
      { query: 'q=1' },
      [],
    ]) {
      expect(() => requestOf(plan, args, () => 'b')).toThrow(ArgumentProblem)
    }
  })

  it('with reserved characters cannot add pairs to a query', () => {
    const parameter = { name: 'q', in: 'query', allowReserved: true }
    const { path } = write('/a', parameter, 'a/b?c&d=e#f+g%26h')
    expect(path).toBe('/a?q=a/b?c%26d=e%23f%2Bg%2526h')
  })

  it('in parts of a form cannot end the part', () => {
    const plan = {
      format: 'multipart' as const,
      type: 'multipart/form-data',
      required: true,
      members: {},
    }
    const { bytes } = writeBody(plan, { 'a"\r\nx: y': 'b' }, () => 'mark')
    expect(bytes.toString()).toBe(
      '--mark\r\ncontent-disposition: form-data; name="a%22%0D%0Ax: y"\r\n\r\nb\r\n--mark--\r\n',
    )
  })
})

it('sends bodies that are no objects, beside a path parameter of the same name', () => {
  const operation = {
    operationId: 'op',
    parameters: [{ name: 'body', in: 'path', schema: { type: 'string' } }],
    requestBody: { content: { 'application/json': { schema: { type: 'array' } } } },
  }
  const document = { openapi: '3.1.0', paths: { '/{body}': { post: operation } } }
  const plan = compileDocument({ document }, 't').tools.get('op')?.plan
  const request = requestOf(plan as never, { path: { body: 'x' }, body: [1, { a: 2 }] }, () => 'b')
  expect([request.path, request.body?.bytes.toString()]).toEqual(['/x', '[1,{"a":2}]'])
})

it('leaves out operations with too many or too deep schemas', () => {
  const chain = Object.fromEntries(
    Array.from({ length: 300 }, (_, at) => [
      `S${at}`,
      { properties: { next: { $ref: `#/components/schemas/S${at + 1}` } } },
    ]),
  )
  const parameters = [{ name: 'q', in: 'query', schema: { $ref: '#/components/schemas/S0' } }]
  const document = {
    openapi: '3.0.0',
    components: { schemas: { ...chain, S300: {}, A: { $ref: '#/components/schemas/A' } } },
    paths: {
      '/deep': { get: { operationId: 'deep', parameters } },
      '/loop': { get: { operationId: 'loop', parameters: [{ $ref: '#/components/schemas/A' }] } },
      '/fine': { get: { operationId: 'fine' } },
    },
  }
  const { tools, problems } = compileDocument({ document }, 't')
  expect([...tools.keys()]).toEqual(['fine'])
  expect(problems).toEqual([
    'GET /deep: its schemas are too large',
    'GET /loop: references lead to each other',
  ])
})

// Random values, read back by an independent reader ------------------------------------------------

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
const awkward = fc.constantFrom(
  'a,b',
  'a&b=c',
  'a b',
  'a|b',
  'a;b',
  'a.b',
  '%41',
  '+',
  '#',
  '[x]',
  'ä€😀',
)
const atom = fc.oneof(text, awkward).filter((one) => one.isWellFormed())
const key = fc.stringMatching(/^[a-z]{1,6}$/)

/** Reads a query as the styles say. */
function readQuery(search: string, { name, style, explode }: Parameter, value: unknown): unknown {
  const pairs = search
    .slice(1)
    .split('&')
    .filter((one) => one !== '')
    .map((one) => one.split('='))
    .map(([left = '', ...right]) => [decodeURIComponent(left), right.join('=')] as const)
  const isList = Array.isArray(value)
  if (style === 'deepObject' && !isList && typeof value === 'object') {
    return Object.fromEntries(
      pairs.map(([left, one]) => [left.slice(name.length + 1, -1), decodeURIComponent(one)]),
    )
  }
  if (explode === true && isList) return pairs.map(([, one]) => decodeURIComponent(one))
  if (explode === true && typeof value === 'object') {
    return Object.fromEntries(pairs.map(([left, one]) => [left, decodeURIComponent(one)]))
  }
  const mark = { spaceDelimited: '%20', pipeDelimited: '%7C' }[style ?? ''] ?? ','
  const raw = pairs[0]?.[1] ?? ''
  if (typeof value === 'string') return decodeURIComponent(raw)
  const items = raw.split(mark).map(decodeURIComponent)
  if (isList) return items
  return Object.fromEntries(
    Array.from({ length: items.length / 2 }, (_, at) => [items[2 * at], items[2 * at + 1]]),
  )
}

it('reads back from queries what was written, in every style', () => {
  const parameter = fc.record({
    name: key,
    in: fc.constant('query'),
    style: fc.constantFrom('form', 'deepObject', 'form'),
    explode: fc.boolean(),
  })
  const delimited = fc.record({
    name: key,
    in: fc.constant('query'),
    style: fc.constantFrom('spaceDelimited', 'pipeDelimited'),
    explode: fc.constant(false),
  })
  const plain = fc.stringMatching(/^[A-Za-z0-9,;&=#+ä-]{1,8}$/)
  const value = fc.oneof(
    atom,
    fc.array(atom, { minLength: 1, maxLength: 4 }),
    fc.dictionary(key, atom, { minKeys: 1, maxKeys: 3 }),
  )
  const plainValue = fc.oneof(
    fc.array(plain, { minLength: 1, maxLength: 4 }),
    fc.dictionary(key, plain, { minKeys: 1, maxKeys: 3 }),
  )
  const cases = fc.oneof(fc.tuple(parameter, value), fc.tuple(delimited, plainValue))
  fc.assert(
    fc.property(cases, ([one, given]) => {
      fc.pre(!(one.style === 'deepObject' && Array.isArray(given) && !one.explode))
      const { path } = write('/a', one, given)
      const url = new URL(`http://host${path}`)
      expect([url.pathname, url.hash]).toEqual(['/a', ''])
      expect(readQuery(path.slice(2), one, given)).toEqual(
        Array.isArray(given) || typeof given === 'string' ? given : { ...given },
      )
    }),
    { numRuns: 400 },
  )
})

it('never writes a path that leads elsewhere', () => {
  const piece = fc.constantFrom(
    '.',
    '..',
    '/',
    '\\',
    '%',
    '2e',
    '2f',
    ';',
    '?',
    '#',
    'a',
    '%2e',
    '\t',
    '%25',
  )
  const hostile = fc.array(piece, { maxLength: 6 }).map((all) => all.join(''))
  fc.assert(
    fc.property(
      fc.oneof(hostile, atom),
      fc.constantFrom('simple', 'label', 'matrix'),
      (value, style) => {
        let path: string
        try {
          path = write('/a/{id}/b', { name: 'id', in: 'path', style }, value).path
        } catch (error) {
          expect(error).toBeInstanceOf(ArgumentProblem)
          return
        }
        // Whatever a server decodes, it is below /a.
        for (let seen = path, round = 0; round < 4; round++) {
          const url = new URL(`http://host${seen.replaceAll('?', '%3F').replaceAll('#', '%23')}`)
          expect(url.pathname.startsWith('/a/')).toBe(true)
          expect(url.pathname.endsWith('/b')).toBe(true)
          seen = seen.replace(/%([0-7][0-9a-f])/gi, (_, hex) =>
            String.fromCharCode(Number.parseInt(hex, 16)),
          )
          if (seen.includes('\\')) seen = seen.replaceAll('\\', '/')
        }
      },
    ),
    { numRuns: 1_000 },
  )
})
