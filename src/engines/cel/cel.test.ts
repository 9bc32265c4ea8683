import { describe, expect, it } from 'vitest'
import {
  type Activation,
  activationOf,
  CelError,
  type CelProgram,
  type CelResult,
  CelView,
  compileCel,
  compileOrFail,
  FlattenedMap,
  gatewayVariables,
  isCelError,
  writeJson,
} from './index.ts'

function compile(source: string, costLimit?: number): CelProgram {
  const outcome = compileCel(source, { variables: gatewayVariables, costLimit })
  if (!outcome.ok) throw new Error(outcome.problems[0]?.message)
  return outcome.value
}

const evaluate = (source: string, variables: Record<string, CelResult> = {}) =>
  compile(source).evaluate(activationOf(variables))

const kindOf = (result: CelResult) => (isCelError(result) ? result.kind : 'value')

describe('the variables of an expression', () => {
  it.each([
    ['request.body', true],
    ['request["body"]', true],
    ['json(request.body).model == "x"', true],
    ['request.body.model', true],
    ['has(request.body)', true],
    ['request', true],
    ['toJson(request)', true],
    ['request[jwt.sub]', true],
    ['[request].map(r, r.body)', true],
    ['request.with(r, r.body)', true],
    ['variables()', true],
    ['cel.bind(request, request.body, request)', true],
    ['request.headers["body"]', false],
    ['request.bodyPrefix', false],
    ['response.body', false],
    ['"request.body"', false],
    ['[{"body": 1}].map(request, request.body)', false],
    ['cel.bind(request, {"body": 1}, request.body)', false],
  ])('%s: it needs the request body: %s', (source, expected) => {
    expect(compile(source).mentions('request.body')).toBe(expected)
  })

  it.each(['env.podname', 'proxy.route.rules', 'proxy.listener.port', 'llm.requestmodel'])(
    '%s is rejected as an unknown field',
    (source) => {
      const outcome = compileCel(source, { variables: gatewayVariables })
      expect(outcome.ok ? [] : outcome.problems.map(({ message }) => message)).toEqual([
        expect.stringMatching(/has no field/),
      ])
    },
  )

  it('exclude variables that macros bind', () => {
    const { variables } = compile(
      'jwt.roles.exists(r, r == source.address && llm.toolCalls.all(jwt, jwt > 1))',
    )
    expect(variables).toEqual(['jwt', 'source', 'llm'])
    const outcome = compileCel('math.abs(a) + size(base64.encode(b)) > 0 && type(c) == int')
    expect(outcome.ok && outcome.value.variables).toEqual(['a', 'b', 'c'])
  })
})

describe('an activation', () => {
  it('is asked only for variables that the evaluation needs', () => {
    const asked: string[] = []
    const activation: Activation = {
      lookup(name) {
        asked.push(name)
        return name === 'jwt' ? { admin: true } : undefined
      },
    }
    expect(compile('jwt.admin || request.path == "/"').evaluate(activation)).toBe(true)
    expect(asked).toEqual(['jwt'])
  })

  it('may throw, which becomes an internal error', () => {
    const activation: Activation = {
      lookup: () => {
        throw new TypeError('a bug')
      },
    }
    expect(kindOf(compile('jwt.a').evaluate(activation))).toBe('internal')
  })

  it('may return views, whose null fields count as present', () => {
    class View extends CelView {
      override field(name: string) {
        return name === 'empty' ? null : undefined
      }
      override fieldNames() {
        return ['empty']
      }
    }
    const result = evaluate('[jwt.empty == null, has(jwt.empty), has(jwt.other), size(jwt) == 1]', {
      jwt: new View(),
    })
    expect(result).toEqual([true, true, false, true])
  })

  it('may return an error as a value, which operators propagate', () => {
    const request = { body: new CelError('limit', 'the body is over its limit') } as never
    expect(kindOf(evaluate('size(request.body) > 1', { request }))).toBe('limit')
    expect(kindOf(evaluate('request.body == "x" || jwt.absent', { request }))).toBe('limit')
  })
})

describe('limits of expressions', () => {
  const deep = (depth: number) => {
    let value: CelResult = 1
    for (let i = 0; i < depth; i++) value = [value] as CelResult
    return value
  }

  it.each([
    [`${'!'.repeat(16_000)}true`],
    [`${'-'.repeat(16_000)}1`],
    [`${'('.repeat(8_000)}1${')'.repeat(8_000)}`],
    ['['.repeat(8_000) + ']'.repeat(8_000)],
    [`1${'+1'.repeat(8_000)}`],
    [`a${'.a'.repeat(8_000)}`],
  ])('refuse an expression that is nested too deeply: %.5s', (source) => {
    expect(compileCel(source)).toMatchObject({ ok: false })
  })

  it('allow long chains of && and ||', () => {
    expect(evaluate(`true${' && true'.repeat(1_500)}`)).toBe(true)
    expect(evaluate(`false${' || false'.repeat(1_500)}`)).toBe(false)
  })

  it('stop an evaluation with too many steps, even if an operator would discard the error', () => {
    const list = { list: Array.from({ length: 1000 }, (_, i) => BigInt(i)) }
    const activation = activationOf({ jwt: list })
    const source = 'jwt.list.all(a, jwt.list.all(b, a + b >= 0))'
    expect(kindOf(compile(source, 100_000).evaluate(activation))).toBe('cost')
    expect(kindOf(compile(`${source} || true`, 100_000).evaluate(activation))).toBe('cost')
    expect(kindOf(compile(`coalesce(${source}, 1)`, 100_000).evaluate(activation))).toBe('cost')
    expect(compile(source, 10_000_000).evaluate(activation)).toBe(true)
  })

  it('stop strings that double repeatedly', () => {
    const doubling = Array.from({ length: 40 }, (_, i) => `cel.bind(a${i + 1}, a${i} + a${i}, `)
    const source = `cel.bind(a0, "aaaaaaaaaaaaaaaa", ${doubling.join('')}size(a40)${')'.repeat(41)}`
    expect(kindOf(evaluate(source))).toBe('cost')
  })

  it.each([
    ['a0 + a0'],
    ['a0.addQuery("x", a0)'],
    ['url.encode(a0 + a0)'],
    ['a0.replace("x", "xx")'],
    ['a0.regexReplace("x", "xx")'],
    ['[a0, a0].join("")'],
    ['toJson([a0, a0])'],
    ['strings.quote(a0 + a0)'],
    ['form.encode({"x": [a0, a0]})'],
  ])('stop strings that grow by %s', (growth) => {
    const steps = Array.from(
      { length: 60 },
      (_, i) => `cel.bind(a${i + 1}, ${growth.replaceAll('a0', `a${i}`)}, `,
    )
    const source = `cel.bind(a0, "xxxx ü%", ${steps.join('')}size(a60)${')'.repeat(61)}`
    expect(kindOf(evaluate(source))).toMatch(/cost|limit/)
  })

  it('stop the serialization of values whose parts are shared many times', () => {
    const doubling = (pair: (name: string) => string, count = 60) => {
      const steps = Array.from(
        { length: count },
        (_, i) => `cel.bind(a${i + 1}, ${pair(`a${i}`)}, `,
      )
      return (body: string) => `cel.bind(a0, 1, ${steps.join('')}${body}${')'.repeat(count + 1)}`
    }
    const lists = doubling((name) => `[${name}, ${name}]`)
    const maps = doubling((name) => `{"l": ${name}, "r": ${name}}`)
    expect(kindOf(evaluate(lists('toJson(a60)')))).toBe('cost')
    const value = evaluate(lists('a60'))
    expect(kindOf(isCelError(value) ? value : writeJson(value))).toBe('limit')
    const jwt = { a: value, b: evaluate(lists('a60')) } as never
    expect(kindOf(evaluate('jwt.a == jwt.b', { jwt }))).toBe('cost')
    const flat = evaluate(maps('flattenRecursive(a60)'))
    expect(flat instanceof FlattenedMap && flat.attributes('p').length).toBe(1000)
  })

  it.each([
    ['double', '1'],
    ['int', '1'],
    ['duration', '1h'],
    ['timestamp', '2'],
    ['base64.decode', '='],
    ['ip', ':'],
    ['json', '['],
    ['url.decode', '%'],
  ])('allow only linear time for a long invalid argument of %s', (name, unit) => {
    const jwt = { text: `${unit.repeat(500_000)}!` }
    expect(kindOf(evaluate(`${name}(jwt.text)`, { jwt }))).toBe('value')
  })

  it('stop at values that are nested too deeply', () => {
    const activation = { jwt: { a: deep(100_000), b: deep(100_000) } as never }
    expect(kindOf(evaluate('jwt.a == jwt.b', activation))).toBe('limit')
    expect(kindOf(evaluate('toJson(jwt.a)', activation))).toBe('limit')
    expect(kindOf(evaluate('json("[" + jwt.text + "]") == []', { jwt: { text: '' } }))).toBe(
      'value',
    )
  })
})

describe('problems of an expression', () => {
  it('include line and column', () => {
    const outcome = compileCel('1 +\n  foo(', {})
    expect(outcome).toMatchObject({ ok: false, problems: [{ offset: 10, line: 2, column: 7 }] })
  })

  it('are all reported at once', () => {
    const outcome = compileCel('foo(1) + bar(2)', { variables: gatewayVariables })
    expect(outcome).toMatchObject({ problems: [{ offset: 0 }, { offset: 9 }] })
  })

  it('include unknown functions only if variables are declared', () => {
    const outcome = compileCel('foo(1) || true')
    expect(outcome.ok && outcome.value.evaluate(activationOf({}))).toBe(true)
  })

  it.each([
    ['jwt.sub.beginsWith("a")', 8],
    ['(jwt.sub) . beginsWith("a")', 12],
    ['[1].foo().bar()', 4],
  ])('of a method are at its name: %s', (source, offset) => {
    const outcome = compileCel(source, { variables: gatewayVariables })
    expect(outcome.ok ? [] : outcome.problems.map((problem) => problem.offset)).toContain(offset)
  })
})

describe('an expression that does not compile', () => {
  it('fails at each evaluation and needs no variable', () => {
    const program = compileOrFail('request.body ==', { variables: gatewayVariables })
    expect(kindOf(program.evaluate(activationOf({})))).toBe('value')
    expect(program.mentions('request.body')).toBe(false)
  })
})

describe('results of expressions', () => {
  it('become JSON with every digit of an integer', () => {
    const value = evaluate('{"a": 9007199254740993, "b": [b"x", timestamp(0), null]}')
    expect(isCelError(value) ? value : writeJson(value)).toBe(
      '{"a":9007199254740993,"b":["eA==","1970-01-01T00:00:00Z",null]}',
    )
  })

  it('of flatten become attributes with a prefix', () => {
    const jwt = { a: 1, b: { c: 'x', d: null }, e: [1] }
    const once = evaluate('flatten(jwt)', { jwt })
    const all = evaluate('flattenRecursive(jwt)', { jwt })
    expect(once instanceof FlattenedMap && once.attributes('p')).toEqual([
      ['p.a', 1],
      ['p.b', { c: 'x', d: null }],
      ['p.e', [1]],
    ])
    expect(all instanceof FlattenedMap && all.attributes('p')).toEqual([
      ['p.a', 1],
      ['p.b.c', 'x'],
      ['p.e', [1]],
    ])
  })

  it('are the same after the pattern cache has overflowed', () => {
    const program = compile('jwt.list.all(i, ("x" + i).matches("^x" + i + "$"))')
    const list = Array.from({ length: 1200 }, (_, i) => String(i))
    expect(program.evaluate(activationOf({ jwt: { list } }))).toBe(true)
    expect(program.evaluate(activationOf({ jwt: { list } }))).toBe(true)
  })
})
