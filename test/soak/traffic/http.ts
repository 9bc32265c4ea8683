/** Tagged requests, raw pipelines that are read strictly, refusals, upgrades, and clients that break off. */
import { request } from 'node:http'
import { request as requestSecure } from 'node:https'
import { readResponse } from '../../protocol/strict-reader.ts'
import { RawConnection } from '../../proxy/engine-rig.ts'
import { send } from '../../support/http-client.ts'
import { hostOf } from '../../support/manifests.ts'
import { type Asked, clientNames } from '../../support/tagged-client.ts'
import { upgrade } from '../../support/tagged-upgrades.ts'
import { forbiddenField, shapes, taggedBody, tagsIn } from '../../support/tagged-upstream.ts'
import type { Outcome } from '../ledger.ts'
import { limitedRequests, policyNames, refusingNames, upgradableNames, waysOf } from '../routes.ts'
import { entranceOf, type Traffic, type TrafficContext } from './context.ts'

/** nginx 1.22 forwards neither interim responses nor trailers. */
const shapesOfNginx = shapes.filter((shape) => shape !== 'hints' && shape !== 'trailers')

const methods = ['GET', 'GET', 'GET', 'POST', 'POST', 'HEAD'] as const

interface Choice {
  readonly asked: Asked
  readonly ways: readonly string[]
}

function choose(context: TrafficContext, tag: string): Choice {
  const { random, servers } = context
  const isSecure = random.oneIn(5)
  const { port, ways } = isSecure
    ? { port: servers.secureGateway, ways: ['gateway'] }
    : entranceOf(context)
  const way = random.pick(waysOf(servers))
  const passesNginx = way === 'nginx' || ways.includes('nginx-front')
  const shape = random.pick(passesNginx ? shapesOfNginx : shapes)
  const host = hostOf(`${random.pick(policyNames)}-${way}`)
  return {
    asked: { port, host, tag, shape, method: random.pick(methods), isSecure },
    ways: [...ways, way],
  }
}

export const tagged: Traffic = async (context) => {
  const { ledger, accounts, clients, random } = context
  const tag = ledger.nextTag()
  const { asked, ways } = choose(context, tag)
  // The front of nginx speaks HTTP/1.1 only.
  const names = ways.includes('nginx-front') ? (['http1', 'undici'] as const) : clientNames
  const client = random.pick(names)
  const run = async (): Promise<Outcome | undefined> => {
    const problem = await clients.ask(asked, client)
    if (problem !== undefined) {
      return problem.kind === 'wrong' ? { ...problem, invariant: 'isolation' } : problem
    }
    accounts.expect(tag, { empty: 204, refused: 409 }[asked.shape as string] ?? 200, false)
    return undefined
  }
  const { method, host, shape, isSecure } = asked
  const what = `${method} ${host} ${shape}${isSecure === true ? ' over TLS' : ''}`
  await ledger.exchange(`tagged ${client}`, ways, tag, run, what)
}

/** A client that reads a large response with pauses. */
export const slow: Traffic = async (context) => {
  const { ledger, clients, random, servers } = context
  const tag = ledger.nextTag()
  const way = random.pick(waysOf(servers))
  const host = hostOf(`${random.pick(policyNames)}-${way}`)
  const asked: Asked = {
    ...{ port: servers.gateway, host, tag, shape: 'large', method: 'GET' },
    pauseMs: 20 + random.below(200),
  }
  await ledger.exchange('slow reader', ['gateway', way], tag, () => clients.ask(asked), host)
}

/** Several requests at once on a connection of its own, whose responses are read strictly. */
export const pipelined: Traffic = async (context) => {
  const { ledger, accounts, random, servers } = context
  const way = random.pick(waysOf(servers))
  const host = hostOf(`${random.pick(policyNames)}-${way}`)
  const sent = Array.from({ length: 1 + random.below(4) }, () => ({
    tag: ledger.nextTag(),
    shape: random.pick(['small', 'large', 'chunked', 'empty'] as const),
    method: random.pick(['GET', 'GET', 'HEAD'] as const),
  }))
  const [{ tag } = { tag: '' }] = sent
  await ledger.exchange('pipelined', ['gateway', way], tag, async () => {
    const client = await RawConnection.connect(servers.gateway)
    try {
      const heads = sent.map(
        ({ tag: own, shape, method }) =>
          `${method} /${own} HTTP/1.1\r\nHost: ${host}\r\nX-Tag: ${own}\r\nX-Shape: ${shape}\r\n\r\n`,
      )
      client.write(heads.join(''))
      let from = 0
      for (const one of sent) {
        const { end, outcome } = await readOne(client, from, one, host)
        if (outcome !== undefined) return outcome
        accounts.expect(one.tag, one.shape === 'empty' ? 204 : 200, false)
        from = end
      }
      return undefined
    } finally {
      client.socket.destroy()
    }
  })
}

async function readOne(
  client: RawConnection,
  from: number,
  {
    tag,
    shape,
    method,
  }: { tag: string; shape: 'small' | 'large' | 'chunked' | 'empty'; method: string },
  host: string,
): Promise<{ end: number; outcome?: Outcome }> {
  let found: ReturnType<typeof readResponse>
  const what = `${method} ${host} ${shape}`
  const problem = (kind: Outcome['kind'], text: string) => ({
    end: 0,
    outcome: {
      kind,
      ...(kind === 'wrong' && { invariant: 'framing' as const }),
      text: `${tag} ${what}: ${text}`,
      received: client.text.slice(from, from + 4_000),
    },
  })
  try {
    await client.until(() => {
      const isOver = client.ended || client.closed
      found = readResponse(client.text, from, { method, minor: 1 }, isOver)
      return found !== undefined || isOver
    })
  } catch (error) {
    return problem('wrong', (error as Error).message.slice(0, 200))
  }
  if (found?.end === undefined) return problem('failed', 'the connection ends before the response')
  const foreign = tagsIn(client.text.slice(from, found.end)).filter((other) => other !== tag)
  if (foreign.length > 0) return problem('wrong', `carries ${foreign.join(' ')}`)
  if (found.status !== (shape === 'empty' ? 204 : 200)) return problem('failed', found.startLine)
  const expected = method === 'HEAD' ? '' : taggedBody(tag, shape)
  if (found.content !== expected) {
    return problem('wrong', `${found.content.length} in place of ${expected.length} bytes`)
  }
  return { end: found.end }
}

/** A request that a policy must refuse. */
export const refused: Traffic = async (context) => {
  const { ledger, accounts, random, servers } = context
  const tag = ledger.nextTag()
  const { port, ways } = entranceOf(context)
  const way = random.pick(waysOf(servers))
  const host = hostOf(`${random.pick(refusingNames)}-${way}`)
  await ledger.exchange('refused', [...ways, way], tag, async () => {
    const { status, body, headers } = await send(port, {
      method: random.pick(['GET', 'POST']),
      path: `/${tag}`,
      headers: { host, 'x-tag': tag, 'x-shape': 'small', [forbiddenField]: 'yes' },
    })
    const received = `${status} ${JSON.stringify(headers)} ${body}`
    if (status === 403) accounts.expect(tag, 403, false)
    else if (status >= 500) return { kind: 'failed', text: `${host}: ${status}`, received }
    else {
      const text = `${host} answers ${status} to a request that must be refused`
      return { kind: 'wrong', invariant: 'protection', text, received }
    }
    return undefined
  })
}

export const upgraded: Traffic = async ({ ledger, random, servers }) => {
  const tag = ledger.nextTag()
  const host = hostOf(`${random.pick(upgradableNames)}-http1`)
  await ledger.exchange('upgrade', ['gateway', 'http1'], tag, async () => {
    const problem = await upgrade(servers.gateway, host, tag)
    return problem === undefined
      ? undefined
      : { kind: 'wrong', invariant: 'isolation', text: `${host}: ${problem}`, received: problem }
  })
}

/** When responses came that the limit admitted, in milliseconds. */
const admitted: number[] = []
/** Over how long the limit is checked; admissions and responses may be apart by as much as the slack. */
const limitMs = 10_000
const slackMs = 2_000

/** A few requests at once to a route with a limit, which never admits more than it may. */
export const limited: Traffic = async ({ ledger, accounts, random, servers }) => {
  const tags = Array.from({ length: 1 + random.below(8) }, () => ledger.nextTag())
  const [first = ''] = tags
  await ledger.exchange('limited', ['gateway', 'http1'], first, async () => {
    const statuses = await Promise.all(
      tags.map(async (tag) => {
        const headers = { host: hostOf('limited'), 'x-tag': tag, 'x-shape': 'small' }
        const { status } = await send(servers.gateway, { path: `/${tag}`, headers })
        accounts.expect(tag, status, false)
        return status
      }),
    )
    const other = statuses.find((status) => status !== 200 && status !== 429)
    if (other !== undefined) return { kind: 'failed', text: `status ${other}`, received: '' }
    const now = performance.now()
    admitted.push(...statuses.filter((status) => status === 200).map(() => now))
    while ((admitted[0] ?? now) < now - limitMs) admitted.shift()
    // A full bucket, and what flows into it meanwhile.
    const most = limitedRequests * (1 + (limitMs + slackMs) / 1_000)
    if (admitted.length <= most) return undefined
    const text = `${admitted.length} requests are admitted in ${limitMs / 1_000} s, at most ${most} may be`
    return { kind: 'wrong', invariant: 'accounts', text, received: admitted.join(' ') }
  })
}

/** A client that goes away at any moment. Nothing is expected of it but that others are not harmed. */
export const abandoned: Traffic = async (context) => {
  const { ledger, random } = context
  const tag = ledger.nextTag()
  const { asked, ways } = choose(context, tag)
  const { port, host, shape, isSecure = false } = asked
  const afterMs = random.below(12)
  await ledger.exchange('abandoned', ways, tag, async () => {
    const headers = { host, 'x-tag': tag, 'x-shape': shape }
    const options = { host: '127.0.0.1', port, path: `/${tag}`, headers, method: 'POST' }
    const sent = isSecure
      ? requestSecure({ ...options, agent: false, rejectUnauthorized: false })
      : request({ ...options, agent: false })
    await new Promise<void>((resolve) => {
      sent.on('error', () => {})
      sent.on('close', () => resolve())
      sent.on('response', (response) => response.on('error', () => {}).resume())
      sent.write(tag)
      if (random.oneIn(2)) sent.end(tag)
      setTimeout(() => sent.destroy(), afterMs)
    })
    return undefined
  })
}
