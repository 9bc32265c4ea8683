/** Tokens that users let the gateway have at other services (`backend.auth.oauthUserConsent`). */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { useGateway } from '../support/fixture.ts'
import { freePort, RunningGateway, sluice } from '../support/gateway.ts'
import { manifest } from '../support/manifests.ts'
import { connectClient } from '../support/mcp-client.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { useModernServer } from '../support/mcp-modern-server.ts'
import { useMcpServer } from '../support/mcp-server.ts'
import { startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { Browser } from '../support/sign-in-browser.ts'
import { waitFor } from '../support/wait-for.ts'
import {
  allow,
  authorizationOf,
  browserOf,
  manifestsFor,
  pageOf,
  people,
  programsAt,
  sealingKeys,
  service,
  tokenOf,
} from './user-consent-rig.ts'

vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 })

const legacy = useMcpServer({
  offer: (server) => {
    server.tool('echo', async () => ({ content: [{ type: 'text', text: 'hello' }] }))
  },
})
const modern = useModernServer({
  answers: { 'tools/call': ({ params }) => ({ content: [], structuredContent: params }) },
})
const port = await freePort()
const running = useGateway(() => ({
  args: ['--workers', '2'],
  manifests: {
    'all.yaml': manifestsFor(
      port,
      { legacy: legacy.port, modern: modern.port },
      {
        'legacy-open': {},
        'legacy-closed': { failureMode: 'FailClosed' },
        'modern-open': {},
        'modern-closed': { failureMode: 'FailClosed' },
      },
    ),
    'keys.yaml': manifest(sealingKeys({ '2026-01': 'a'.repeat(40) })),
  },
}))

beforeEach(() => {
  people.reset()
  service.reset()
})

const { call, linkOf, allowed } = programsAt(port)
const grants = async (...args: string[]) => sluice('grants', ...args, '--log-file', running.logFile)

describe('a program of a user', () => {
  it('gets a link until the user has allowed access, and then the service gets a token of this user only', async () => {
    const refused = await call('ann')
    const body = JSON.parse(refused.body) as Record<string, string>
    const link = body.consent_url ?? ''
    expect(refused.status).toBe(401)
    expect(body.error).toBe('consent_required')
    expect(refused.headers['www-authenticate']).toBe(
      `Bearer realm="Restricted", error="consent_required", consent_url="${link}"`,
    )
    expect(link.startsWith(`${pageOf(port, 'service')}?ticket=`)).toBe(true)
    expect(link).not.toContain('ann')
    const browser = await browserOf('ann', port)
    const asked = await browser.open(link)
    expect(asked.body).toContain('the &#60;service&#62; (read)')
    expect(asked.headers['content-security-policy']).toContain("frame-ancestors 'none'")
    expect((await call('ann')).status).toBe(401)
    const done = await allow(browser, link)
    expect([done.status, done.body]).toEqual([200, expect.stringContaining('Access is allowed')])
    expect(service.lastAuthorization.get('code_challenge_method')).toBe('S256')
    expect(service.lastGrant.get('code_verifier')).toMatch(/^.{43}$/)
    for (let count = 0; count < 8; count++) {
      const passed = await call('ann')
      expect(passed.status).toBe(200)
      expect(authorizationOf(passed.body)).toMatch(/^Bearer access-ann-/)
    }
    expect((await call('bob')).status).toBe(401)
    expect((await call('ann', '/other')).status).toBe(401)
    const { stdout } = await grants('list')
    expect(stdout).toContain(`${people.issuer}#ann`)
    expect(stdout).not.toContain('access-ann')
  })

  it('without a verified user gets 401 without a link', async () => {
    const response = await new Browser().send(`http://api.localhost:${port}/`)
    expect([response.status, response.body]).toEqual([401, expect.not.stringContaining('ticket')])
  })
})

describe('the page', () => {
  it('refuses every user but the one for whom the link was made, also on the way back', async () => {
    const link = await linkOf('cid')
    const mallory = await browserOf('mallory', port)
    expect((await mallory.open(link)).status).toBe(403)
    expect((await mallory.open(link, { method: 'POST' })).status).toBe(403)
    // Somebody who is not signed in is asked to, and is then the wrong one, too.
    people.behaviour.user = 'eve'
    expect((await new Browser().open(link)).status).toBe(403)
    // The attacker begins at the service, and lets the victim finish: his account must not become that of the victim.
    const cid = await browserOf('cid', port)
    const own = await linkOf('mallory')
    const toService = await mallory.send(own, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin' },
    })
    const back = await new Browser().send(toService.headers.location ?? '')
    const callback = back.headers.location ?? ''
    expect(callback.startsWith(`${pageOf(port, 'service')}?code=`)).toBe(true)
    expect((await cid.open(callback)).status).toBe(403)
    expect((await call('cid')).status).toBe(401)
    expect((await call('mallory')).status).toBe(401)
  })

  it('refuses links, states and answers that are not its own', async () => {
    const dan = await browserOf('dan', port)
    const link = await linkOf('dan')
    const ticket = new URL(link).searchParams.get('ticket') ?? ''
    const statusOf = async (url: string) => (await dan.open(url)).status
    expect(await statusOf(`${pageOf(port, 'service')}?ticket=forged`)).toBe(400)
    // A link of one service is worth nothing for another one, and is no state.
    expect(await statusOf(`${pageOf(port, 'other')}?ticket=${ticket}`)).toBe(400)
    expect(await statusOf(`${pageOf(port, 'service')}?code=x&state=${ticket}`)).toBe(400)
    const foreign = { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } }
    expect((await dan.open(link, foreign)).status).toBe(403)
    service.behaviour.answer = { iss: 'https://evil.example' }
    expect((await allow(dan, link)).status).toBe(400)
    service.behaviour.answer = { iss: '' }
    expect((await allow(dan, link)).status).toBe(400)
    service.behaviour.answer = { error: 'access_denied', code: '' }
    expect((await allow(dan, link)).status).toBe(403)
    service.reset({ tokenStatus: 500 })
    expect((await allow(dan, link)).status).toBe(502)
    expect((await call('dan')).status).toBe(401)
  })
})

describe('a token', () => {
  it('is renewed once for requests to both workers, and asked for again once the service refuses that', async () => {
    service.behaviour.expiresIn = 1
    await allowed('fay')
    const first = authorizationOf((await call('fay')).body)
    const due = Date.now() + 1_000
    await waitFor('the end of the token', () => Date.now() > due)
    service.reset({ user: 'fay', expiresIn: 600 })
    const all = await Promise.all(Array.from({ length: 24 }, () => call('fay')))
    const sent = new Set(all.map(({ body }) => authorizationOf(body)))
    expect([all.every(({ status }) => status === 200), sent.size]).toEqual([true, 1])
    expect(sent.has(first)).toBe(false)
    expect([service.refreshes, service.reuses]).toEqual([1, 0])
    service.reset({ expiresIn: 1 })
    await allowed('gil')
    service.revokeAll()
    const link = await waitFor('the refusal', async () => {
      const response = await call('gil')
      return response.status === 401 && (JSON.parse(response.body) as { consent_url?: string })
    })
    expect(link.consent_url).toContain('?ticket=')
  })

  it('stays over a restart and a new key, and ends with its key and with `sluice grants revoke`', async () => {
    await allowed('hal')
    await allowed('ida')
    await running.kill()
    await running.start()
    expect((await call('hal')).status).toBe(200)
    running.write(
      'keys.yaml',
      manifest(sealingKeys({ '2026-01': 'a'.repeat(40), '2026-02': 'b'.repeat(40) })),
    )
    await allowed('kim')
    expect((await call('hal')).status).toBe(200)
    const revoked = await grants('revoke', '--principal', `${people.issuer}#hal`)
    expect(revoked.stdout).toContain(`#hal at ${pageOf(port, 'service')}: removed`)
    await waitFor('the end of the grant', async () => (await call('hal')).status === 401)
    expect((await call('ida')).status).toBe(200)
    expect((await grants('revoke')).stderr).toContain('set --principal or --service')
    expect((await grants('revoke', '--principal', 'x')).stderr).toContain('no grant matches')
    running.write('keys.yaml', manifest(sealingKeys({ '2026-03': 'c'.repeat(40) })))
    await waitFor('the end of the keys', async () => (await call('ida')).status === 401)
  })
})

describe('an MCP client', () => {
  it('of 2025-11-25 gets error -32042 with the URL, or a failed call if it cannot open URLs', async () => {
    const headers = { authorization: `Bearer ${await tokenOf('lea')}` }
    const elicitation = { capabilities: { elicitation: { url: {} } } }
    const connecting = connectClient(port, '/legacy', elicitation, headers)
    const refused = await connecting.then(
      () => undefined,
      (error: { code: number; data: unknown }) => error,
    )
    const data = refused?.data as { elicitations: { mode: string; url: string }[] } | undefined
    const [asked] = data?.elicitations ?? []
    expect([refused?.code, asked?.mode]).toEqual([-32042, 'url'])
    await allow(await browserOf('lea', port), asked?.url ?? '', 'lea')
    const client = await connectClient(port, '/legacy', elicitation, headers)
    const plain = await connectClient(port, '/legacy', {}, headers)
    const answer = await client.callTool({ name: 'echo' })
    expect(answer.content).toEqual([{ type: 'text', text: 'hello' }])
    expect(legacy.received.at(-1)?.headers.authorization).toMatch(/^Bearer access-lea-/)
    await grants('revoke', '--principal', `${people.issuer}#lea`)
    const again = await waitFor('the end of the grant', () =>
      client.callTool({ name: 'echo' }).then(
        () => undefined,
        (error: { code: number }) => error,
      ),
    )
    expect(again.code).toBe(-32042)
    const failed = await waitFor('the end of the grant', async () => {
      const result = await plain.callTool({ name: 'echo' })
      return result.isError === true && JSON.stringify(result.content)
    })
    expect(failed).toContain(`${pageOf(port, 'legacy')}?ticket=`)
    await Promise.all([client.close(), plain.close()])
  })

  it('of 2026-07-28 gets an input request with the URL, and its answer does not reach the server', async () => {
    const headers = { authorization: `Bearer ${await tokenOf('moe')}` }
    const url = `http://127.0.0.1:${port}/modern`
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} } } }
    const ask = async (more: object = {}) => {
      const message = modernRequest('tools/call', { name: 'x', ...more }, { meta })
      const { message: answer } = await sendModern(url, message, { headers })
      return answer?.result as Record<string, unknown> | undefined
    }
    const first = await ask()
    expect(first?.resultType).toBe('input_required')
    const requests = first?.inputRequests as Record<string, { params: { url: string } }>
    const [[key, asked] = ['', undefined]] = Object.entries(requests)
    const accepted = { inputResponses: { [key]: { action: 'accept' } } }
    // Saying so is no consent.
    expect((await ask(accepted))?.resultType).toBe('input_required')
    await allow(await browserOf('moe', port), asked?.params.url ?? '', 'moe')
    const result = await ask(accepted)
    expect(JSON.stringify(result)).not.toContain('access-moe')
    expect(modern.last?.params.inputResponses).toEqual({})
    expect(modern.last?.headers.authorization).toMatch(/^Bearer access-moe-/)
  })
})

describe('an MCP client of several servers, of which one needs a grant', () => {
  const elicitation = { capabilities: { elicitation: { url: {} } } }
  const urlIn = (error: unknown) => {
    const { code, data } = error as { code: number; data: { elicitations: { url: string }[] } }
    return [code, data.elicitations[0]?.url]
  }
  const asks = (name: string) => [-32042, expect.stringMatching(`^${pageOf(port, name)}\\?ticket=`)]

  it('of 2025-11-25 uses the other servers, and is asked by calls, or by initialize with FailClosed', async () => {
    const headers = { authorization: `Bearer ${await tokenOf('kim')}` }
    const client = await connectClient(port, '/legacy-open', elicitation, headers)
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['open_echo'])
    const text = [{ type: 'text', text: 'hello' }]
    expect((await client.callTool({ name: 'open_echo' })).content).toEqual(text)
    expect(legacy.received.at(-1)?.headers.authorization).toBeUndefined()
    const refused = await client.callTool({ name: 'shut_echo' }).catch(urlIn)
    expect(refused).toEqual(asks('legacy-open'))
    await allow(await browserOf('kim', port), (refused as string[])[1] ?? '', 'kim')
    expect((await client.callTool({ name: 'shut_echo' })).content).toEqual(text)
    expect(legacy.received.at(-1)?.headers.authorization).toMatch(/^Bearer access-kim-/)
    await client.callTool({ name: 'open_echo' })
    expect(legacy.received.at(-1)?.headers.authorization).toBeUndefined()
    const listed = (await client.listTools()).tools.map(({ name }) => name)
    expect(listed).toEqual(['open_echo', 'shut_echo'])
    await client.close()
    const closed = connectClient(port, '/legacy-closed', elicitation, headers)
    expect(await closed.catch(urlIn)).toEqual(asks('legacy-closed'))
  })

  it('of 2026-07-28 uses the other servers, and is asked by calls, or by lists with FailClosed', async () => {
    const headers = { authorization: `Bearer ${await tokenOf('kai')}` }
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} } } }
    const ask = async (path: string, method: string, params: object = {}) => {
      const message = modernRequest(method, { ...params }, { meta })
      const url = `http://127.0.0.1:${port}/${path}`
      const { message: answer } = await sendModern(url, message, { headers })
      return answer as { readonly error?: unknown; readonly result?: Record<string, unknown> }
    }
    expect((await ask('modern-open', 'tools/list')).result).toMatchObject({
      tools: [{ name: 'open_echo' }],
      _meta: { 'sluice.dev/unavailable': ['shut'] },
    })
    const open = await ask('modern-open', 'tools/call', { name: 'open_x' })
    expect(open.result?.resultType).toBe('complete')
    const shut = await ask('modern-open', 'tools/call', { name: 'shut_x' })
    expect(shut.result?.resultType).toBe('input_required')
    const { error } = await ask('modern-closed', 'tools/list')
    expect(urlIn(error)).toEqual(asks('modern-closed'))
  })
})

describeWithParts(['nats-server'], 'replicas that share a NATS server', () => {
  it('share grants, renew a token once, and revoke it once', async () => {
    const server = await startNatsServer()
    const own = await freePort()
    const key = join(server.folder, 'digest.key')
    writeFileSync(key, Buffer.alloc(32, 5), { mode: 0o600 })
    const replica = (name: string, address: string) =>
      new RunningGateway({
        manifests: {
          'all.yaml': manifestsFor(own),
          'keys.yaml': manifest(sealingKeys({ one: 'a'.repeat(40) })),
        },
        nats: server.url,
        env: {
          XDG_STATE_HOME: join(server.folder, name),
          SLUICE_LEASE_DURATION: '4s',
          SLUICE_DIGEST_KEY_FILE: key,
        },
        args: ['--bind-address', address],
      })
    const all = [replica('one', '127.0.0.1'), replica('two', '127.0.0.2')]
    try {
      for (const one of all) await one.start()
      service.behaviour.expiresIn = 1
      await allow(await browserOf('ann', own), await linkOf('ann', '/', own))
      service.reset({ expiresIn: 600 })
      const due = Date.now() + 1_100
      await waitFor('the end of the token', () => Date.now() > due)
      const calls = Array.from({ length: 12 }, (_, at) =>
        call('ann', '/', own, `127.0.0.${(at % 2) + 1}`),
      )
      const answers = await Promise.all(calls)
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
      expect([service.refreshes, service.reuses]).toEqual([1, 0])
      const { stdout } = await sluice('grants', 'list', '--nats', server.url, '-o', 'json')
      expect(JSON.parse(stdout)).toMatchObject([{ service: pageOf(own, 'service') }])
      await sluice('grants', 'revoke', '--nats', server.url, '--service', pageOf(own, 'service'))
      await waitFor('the outcome', async () => {
        const listed = await sluice('grants', 'list', '--revoked', '--nats', server.url)
        return / revoked +1\s/.test(listed.stdout)
      })
      // One replica has revoked each token once.
      expect(service.revocations).toHaveLength(2)
    } finally {
      for (const one of all) await one.dispose()
      await server.remove()
    }
  })
})
