// What applications do with the package, against a vendor on `url` (test/packages/vendor.ts).
import {
  Builtin,
  Guards,
  GuardsError,
  guardFetch,
  Mask,
  MaskStream,
  Pattern,
  PatternError,
  RateLimiter,
  Router,
  TokenCounter,
} from '@sluice/core'

const guards = [{ rules: [Builtin.Email] }]
const rejecting = [{ rules: ['forbidden'], rejects: true }]

function expectEqual(seen, wanted) {
  const [left, right] = [JSON.stringify(seen), JSON.stringify(wanted)]
  if (left !== right) throw new Error(`${left} instead of ${right}`)
}

async function expectError(type, promise) {
  const error = await promise.then(
    (value) => value,
    (reason) => reason,
  )
  if (!(error instanceof type)) throw new Error(`${error} instead of a ${type.name}`)
}

const chat = (content, more = {}) => ({
  model: 'm',
  messages: [{ role: 'user', content }],
  ...more,
})

/** Values that are no rules must not become rules that mask something else. */
async function refusesWrongValues() {
  const refused = [
    [{}, 'rules[0].pattern'],
    [{ regex: 'ada' }, 'rules[0].pattern'],
    [undefined, 'rules[0] must'],
    [{ builtin: 'Nope' }, 'rules[0].builtin'],
    [{ builtin: 'toString' }, 'rules[0].builtin'],
    [{ pattern: 'a', replacement: 5 }, 'rules[0].replacement'],
  ]
  for (const [rule, message] of refused) {
    for (const make of [() => new Mask([rule]), () => new Guards([{ rules: [rule] }])]) {
      const error = await Promise.try(make).catch((reason) => reason)
      expectEqual([error instanceof TypeError, error.message?.includes(message)], [true, true])
    }
  }
  await expectError(
    TypeError,
    Promise.try(() => new Mask('abc')),
  )
  for (const source of [undefined, null, 5]) {
    await expectError(
      TypeError,
      Promise.try(() => new Pattern(source)),
    )
  }
}

function post(send, url, body, headers = {}) {
  return send(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

/** The texts of the deltas of a stream. */
const streamed = (body) =>
  body
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .flatMap((line) => JSON.parse(line.slice(6)).choices ?? [])
    .map(({ delta }) => delta.content ?? '')
    .join('')

const textOf = async (response) => (await response).text()
const jsonOf = async (response) => (await response).json()

const checks = {
  'refuses values that are no rules, patterns or periods': refusesWrongValues,
  async 'masks requests and whole answers'(url) {
    const send = guardFetch({ request: guards, response: guards })
    const answer = await jsonOf(
      post(send, `${url}/v1/chat/completions`, chat('say ada@example.com bob_AT_example.com')),
    )
    // The vendor repeats what it has received.
    expectEqual(answer.choices[0].message.content, '<EMAIL_ADDRESS> <EMAIL_ADDRESS>')
    expectEqual(answer.received, 'say <EMAIL_ADDRESS> bob_AT_example.com')
  },
  async 'masks streams of one character for each event'(url) {
    const send = guardFetch({ response: guards })
    const body = await textOf(
      post(
        send,
        `${url}/v1/chat/completions`,
        chat('say to bob_AT_example.com now', { stream: true }),
      ),
    )
    expectEqual(streamed(body), 'to <EMAIL_ADDRESS> now')
    expectEqual(body.trim().endsWith('data: [DONE]'), true)
  },
  async 'takes a Request, and a body that is a stream'(url) {
    const send = guardFetch({ request: guards })
    const content = JSON.stringify(chat('say ada@example.com'))
    const request = new Request(`${url}/v1/chat/completions`, { method: 'POST', body: content })
    expectEqual((await jsonOf(send(request))).received, 'say <EMAIL_ADDRESS>')
    const { body } = new Response(content)
    const answer = await jsonOf(send(`${url}/v1/chat/completions`, { method: 'POST', body }))
    expectEqual(answer.received, 'say <EMAIL_ADDRESS>')
  },
  async 'rejects requests, answers and streams'(url) {
    const both = guardFetch({ request: rejecting, response: rejecting })
    const chats = `${url}/v1/chat/completions`
    expectEqual((await post(both, chats, chat('forbidden'))).status, 403)
    const answers = guardFetch({ response: rejecting })
    const refused = await post(answers, chats, chat('say forbidden'))
    const body = await refused.text()
    expectEqual([refused.status, body.includes('forbidden')], [403, false])
    const stream = await textOf(post(answers, chats, chat('say forbidden', { stream: true })))
    expectEqual(
      [streamed(stream).includes('forbidden'), stream.includes('rejected')],
      [false, true],
    )
  },
  async 'masks errors of the vendor'(url) {
    const send = guardFetch({ response: [...guards, ...rejecting] })
    const chats = `${url}/v1/chat/completions`
    const failed = await post(send, chats, chat('fail unknown user bob_AT_example.com'))
    expectEqual(
      [failed.status, (await failed.json()).error.message],
      [400, 'unknown user <EMAIL_ADDRESS>'],
    )
    const hidden = await textOf(post(send, chats, chat('fail forbidden')))
    expectEqual(hidden.includes('forbidden'), false)
  },
  async 'reads compressed answers'(url) {
    const send = guardFetch({ response: guards })
    const response = await post(send, `${url}/v1/chat/completions`, chat('zip bob_AT_example.com'))
    expectEqual((await response.json()).choices[0].message.content, '<EMAIL_ADDRESS>')
    expectEqual(response.headers.get('content-encoding'), null)
  },
  async 'passes only known paths'(url) {
    const send = guardFetch({ request: guards, response: guards, unguardedPaths: ['/v1/models'] })
    expectEqual(await jsonOf(send(`${url}/v1/models`)), { data: [] })
    for (const [method, path] of [
      ['GET', '/v1/responses/1'],
      ['GET', '/v1/chat/completions'],
      ['DELETE', '/v1/chat/completions'],
      ['POST', '/v1/threads/1/messages'],
    ]) {
      await expectError(GuardsError, send(url + path, { method }))
    }
  },
  async 'lets no message pass that it cannot judge'(url) {
    const send = guardFetch({ request: guards, response: guards })
    const chats = `${url}/v1/chat/completions`
    const garbage = await post(send, chats, chat('garbage'))
    expectEqual([garbage.status, 'error' in (await garbage.json())], [502, true])
    await expectError(GuardsError, send(chats, { method: 'POST', body: '{' }))
    await expectError(GuardsError, post(send, chats, chat('text')))
  },
  async 'rewrites messages and knows their details'() {
    const masking = new Guards(guards)
    const message =
      '{"model":"m","stream":true,"messages":[{"role":"user","content":"ada\\u0040example.com"}]}'
    expectEqual(
      JSON.parse(masking.rewrite('Completions', 'request', message)).messages[0].content,
      '<EMAIL_ADDRESS>',
    )
    const rewriter = masking.rewriter('Completions', 'request')
    const bytes = new TextEncoder().encode(message)
    const out = [...rewriter.push(bytes.slice(0, 50)), ...rewriter.end(bytes.slice(50))]
    expectEqual(
      new TextDecoder().decode(Uint8Array.from(out)),
      masking.rewrite('Completions', 'request', message),
    )
    expectEqual(rewriter.details, { model: 'm', isStream: true })
    await expectError(
      GuardsError,
      Promise.try(() =>
        new Guards(rejecting).rewrite('Embeddings', 'request', '{"input":"forbidden"}'),
      ),
    )
  },
  async 'masks streams of texts and of bytes'() {
    const mask = new Mask([Builtin.Email, { pattern: 'KEY-\\d+', ignoreCase: true }])
    const text = '\ufeffé ada@example.com 日本 key-12 😀'
    const masked = '\ufeffé <EMAIL_ADDRESS> 日本 <masked> 😀'
    expectEqual(mask.apply(text), masked)
    for (let cut = 0; cut < text.length; cut++) {
      const stream = new MaskStream(mask)
      expectEqual(stream.push(text.slice(0, cut)) + stream.end(text.slice(cut)), masked)
    }
    const bytes = new Response(text).body.pipeThrough(new MaskStream(mask))
    expectEqual(
      [...new Uint8Array(await new Response(bytes).arrayBuffer())],
      [...new TextEncoder().encode(masked)],
    )
    let joined = ''
    const pieces = new ReadableStream({
      start(controller) {
        for (const unit of text.split('')) controller.enqueue(unit)
        controller.close()
      },
    })
    for await (const piece of pieces.pipeThrough(new MaskStream(mask))) joined += piece
    expectEqual(joined, masked)
  },
  async 'refuses pieces after the end of a stream'() {
    const stream = new MaskStream(new Mask([Builtin.Email]))
    stream.end('a')
    await expectError(
      Error,
      Promise.try(() => stream.push('ada@example.com')),
    )
  },
  async 'reads surrogates as other hosts do'() {
    const mask = new Mask([Builtin.Email])
    expectEqual(mask.apply('a\ud800b \ud83d\ude00'), 'a\ufffdb 😀')
    expectEqual(new Pattern('a.b').isMatch('a\ud800b'), true)
    expectEqual(new Pattern('é+').findAll('aéé😀é'), [
      { start: 1, end: 3 },
      { start: 5, end: 6 },
    ])
  },
  async 'names what is wrong about a pattern'() {
    await expectError(
      PatternError,
      Promise.try(() => new Mask([Builtin.Email, 'é(?=b)'])),
    )
    const error = await Promise.try(() => new Pattern('é(?=b)')).catch((reason) => reason)
    expectEqual([error.code, error.offset, error.pattern], ['REGEX_LOOKAROUND', 1, 'é(?=b)'])
  },
  async 'limits by a clock of the host'() {
    const limiter = new RateLimiter({ rate: 1, per: 3_600_000, burst: 1 })
    expectEqual([limiter.take('a').allowed, limiter.take('a').allowed], [true, true])
    const refused = limiter.take('a')
    expectEqual([refused.allowed, refused.wait > 3_000_000], [false, true])
    expectEqual(limiter.charge(5, 'b').remaining, -3)
    expectEqual(limiter.peek('b').allowed, false)
    const infinite = Number.POSITIVE_INFINITY
    for (const wrong of [
      { rate: Number.NaN },
      { rate: infinite },
      { burst: infinite },
      { keys: 0 },
    ]) {
      await expectError(
        RangeError,
        Promise.try(() => new RateLimiter({ rate: 1, ...wrong })),
      )
    }
    expectEqual(new RateLimiter({ rate: 1, keys: 0.5 }).take('a').allowed, true)
  },
  async 'matches large requests, and refuses what no head can have'() {
    const router = new Router([{ id: 3, path: '/v1', headers: [{ name: 'x', value: '1' }] }])
    const headers = [...Array.from({ length: 500 }, (_, at) => [`h${at}`, 'v']), ['x', '1']]
    expectEqual(router.match(`/v1/${'a'.repeat(200_000)}?b=c`, { headers }), 3)
    expectEqual(router.match('/v1'), undefined)
    await expectError(
      RangeError,
      Promise.try(() => router.match('/v1/\u0141', { headers })),
    )
    const refused = await Promise.try(
      () => new Router([{ id: 1, path: '(', pathType: 'regex' }]),
    ).catch(({ message }) => message)
    expectEqual(refused, 'pattern "(": a parenthesis has no partner (at character 1)')
  },
  async 'keeps memory small if objects are disposed'() {
    for (let turn = 0; turn < 2_000; turn++) {
      using mask = new Mask([Builtin.Email, `key-[0-9]{${(turn % 9) + 1},99}`])
      expectEqual(mask.apply('ada@example.com'), '<EMAIL_ADDRESS>')
    }
  },
  async 'counts tokens of texts and messages'() {
    const counter = await TokenCounter.load('gpt-4o')
    expectEqual([counter.isExact, counter.count('hello world')], [true, 2])
    expectEqual(
      counter.countMessages([{ role: 'user', content: ['hello', { text: ' world' }] }]),
      3 + 3 + counter.count('user') + counter.count('hello') + counter.count(' world'),
    )
    const call = {
      role: 'assistant',
      content: null,
      tool_calls: [{ function: { arguments: 'word '.repeat(50) } }],
    }
    expectEqual(counter.countMessages([call]) > 50, true)
    expectEqual((await TokenCounter.load('claude-opus')).isExact, false)
  },
}

/** Returns the names of what was checked, and what failed. */
export async function runUse(url) {
  const failures = []
  for (const [name, check] of Object.entries(checks)) {
    await check(url).catch((error) => failures.push(`${name}: ${error.stack ?? error}`))
  }
  return { checked: Object.keys(checks), failures }
}
