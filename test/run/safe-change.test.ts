/** Changes are judged on recorded requests before they take effect. */
import { describe, expect, it } from 'vitest'
import { useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { gateway, hostOf, httpRoute, manifest, policy, secret } from '../support/manifests.ts'

/** A route that answers with a status of its own. */
const answering = (name: string, status: number) =>
  manifest(
    httpRoute(name, { hostnames: [hostOf(name)], rules: [{}] }),
    policy(name, `HTTPRoute/${name}`, { traffic: { directResponse: { status } } }),
  )

const denying = (name: string, expression: string) =>
  manifest(
    policy(`${name}-access`, `HTTPRoute/${name}`, {
      traffic: { authorization: { action: 'Deny', policy: { matchExpressions: [expression] } } },
    }),
  )

describe('sluice run --change-protection hold', async () => {
  const port = await freePort()
  const running = useGateway(() => ({
    manifests: {
      'base.yaml': manifest(gateway(port)),
      'app.yaml': answering('app', 201),
      'other.yaml': answering('other', 201),
    },
    args: ['--change-protection', 'hold', '--record', 'all'],
  }))
  const run = (command: string, ...args: string[]) =>
    sluice(command, ...args, '--log-file', running.logFile)
  const decide = (command: string, ...args: string[]) =>
    run(command, ...args, '--reason', 'agreed', '--author', 'ops')
  const becomes = (name: string, status: number) =>
    running.sendUntil(port, { host: hostOf(name) }, (response) => response.status === status)
  const answers = async (name: string) => (await running.send(port, { host: hostOf(name) })).status
  const held = async () => JSON.parse((await run('approve', '-o', 'json')).stdout)
  /** Waits until one change is held, and returns its position. */
  const heldChange = async (without?: number): Promise<number> => {
    let position = 0
    await expect
      .poll(
        async () => {
          const found = (await held()).held.map((one: { position: number }) => one.position)
          position = found[0] ?? 0
          return found.length === 1 && position !== without
        },
        { timeout: 30_000, interval: 200 },
      )
      .toBe(true)
    return position
  }
  let first = 0

  it('holds a policy that would refuse recorded requests, and lets other objects pass', async () => {
    await becomes('app', 201)
    for (let count = 0; count < 20; count++) await running.send(port, { host: hostOf('app') })
    running.write('access.yaml', denying('app', 'request.method == "GET"'))
    running.write('other.yaml', answering('other', 202))
    await becomes('other', 202)
    first = await heldChange()
    expect(await answers('app')).toBe(201)
    const { stdout, code } = await run('approve')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^change \d+, held since .*\n {2}GatewayPolicy default\/app-access\n {2}maxRefused: \d+ of \d+ recorded requests to Gateway default\/edge \([\d.]+%\) would be refused or unrouted; at most 0\.1% may\n {2}answer 201 → deny 403, \d+ requests, because GatewayPolicy default\/app-access was added\n/,
    )
    expect((await run('status')).stdout).toContain(`change ${first} is held (sluice approve)`)
  })

  it('judges a newer version of a held object again', async () => {
    running.write('access.yaml', denying('app', 'request.method != "POST"'))
    const second = await heldChange(first)
    expect(await decide('approve', `${first}`)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`no change is held at position ${first}`),
    })
    expect(await decide('reject', `${second}`)).toMatchObject({ code: 0, stderr: '' })
    expect(await decide('approve', `${second}`)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`change ${second} was rejected by ops`),
    })
    running.write('access.yaml', denying('app', 'request.method == "DELETE"'))
    await expect.poll(async () => (await run('approve')).code, { timeout: 30_000 }).toBe(1)
    expect(await answers('app')).toBe(201)
  })

  it('holds changes across a restart until they are approved', async () => {
    running.write('app.yaml', '')
    const position = await heldChange()
    const { message } = await running.condition('GatewayPolicy', 'app', 'Held', 'True')
    expect(message).toContain(`sluice approve ${position}`)
    await running.stop()
    await running.start()
    await becomes('app', 201)
    const { stdout, code } = await decide('approve', `${position}`)
    expect([code, stdout]).toEqual([0, expect.stringContaining('in force at 1 of 1 proxies')])
    await becomes('app', 404)
    expect((await run('replay')).stdout).toContain('of which 0 differ')
  })

  it('takes an approval from an annotation, and everything in an emergency', async () => {
    const closing = { traffic: { authorization: { policy: { matchExpressions: ['false'] } } } }
    running.write('deny.yaml', manifest(policy('deny', 'HTTPRoute/other', closing)))
    const next = await heldChange()
    const approval = { 'sluice.dev/approve': `${next}`, 'sluice.dev/reason': 'as planned' }
    const annotated = policy('deny', 'HTTPRoute/other', closing, { annotations: approval })
    running.write('deny.yaml', manifest(annotated))
    await becomes('other', 403)
    expect((await run('log')).stdout).toContain(
      `change ${next} (annotation of GatewayPolicy default/deny: as planned)`,
    )
    running.write('deny.yaml', '')
    await heldChange()
    expect((await run('approve')).stdout).toContain(
      'protections of Gateway default/edge are removed: traffic.authorization of HTTPRoute default/other',
    )
    const { stdout } = await decide('approve', '--emergency')
    expect(stdout).toContain('everything that waited takes effect; objects: 1')
    await becomes('other', 202)
  })
})

describe('a route with API keys that is renamed under --change-protection hold', async () => {
  const port = await freePort()
  const shop = (name: string) =>
    manifest(
      httpRoute(name, { hostnames: [hostOf('shop')], rules: [{}] }),
      policy('shop', `HTTPRoute/${name}`, { traffic: { directResponse: { status: 200 } } }),
    )
  const keys = (name: string) =>
    manifest(
      policy('auth', `HTTPRoute/${name}`, {
        traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
      }),
      secret('keys', { ann: 'key-of-ann' }),
    )
  const running = useGateway(() => ({
    manifests: {
      'base.yaml': manifest(gateway(port)),
      'shop.yaml': shop('shop'),
      'auth.yaml': keys('shop'),
    },
    args: ['--change-protection', 'hold', '--record', 'all'],
  }))
  const run = (command: string, ...args: string[]) =>
    sluice(command, ...args, '--log-file', running.logFile)
  const answer = async () => (await running.send(port, { host: hostOf('shop') })).status
  const held = async () =>
    (
      JSON.parse((await run('approve', '-o', 'json')).stdout).held as readonly {
        position: number
        unmet: readonly { message: string }[]
      }[]
    )[0]
  const messages = async () => (await held())?.unmet.map(({ message }) => message).join('\n')

  it('is held, because its requests would need no key', async () => {
    for (let count = 0; count < 5; count++) expect(await answer()).toBe(401)
    running.write('shop.yaml', shop('shop2'))
    await expect
      .poll(messages, { timeout: 30_000 })
      .toMatch(
        /^5 of 5 recorded requests to Gateway default\/edge \(100%\) that traffic.apiKeyAuthentication refuses would be admitted; at most 0% may$/m,
      )
    expect(await messages()).toContain(
      'protections of Gateway default/edge are removed: traffic.apiKeyAuthentication of HTTPRoute default/shop (its requests go to HTTPRoute default/shop2 without it)',
    )
    expect(await answer()).toBe(401)
  })

  it('says that a change restores a protection that was in force before', async () => {
    const approve = async () =>
      run('approve', `${(await held())?.position}`, '--reason', 'agreed', '--author', 'ops')
    await approve()
    await expect.poll(answer, { timeout: 30_000 }).toBe(200)
    running.write('shop.yaml', shop('shop'))
    await expect
      .poll(messages, { timeout: 30_000 })
      .toMatch(
        /would be refused or unrouted; at most 0.1% may\. The change restores traffic\.apiKeyAuthentication, which was in force until \S+Z and would refuse \d+ of them: approve the change if these requests were sent because traffic\.apiKeyAuthentication was missing$/m,
      )
    await approve()
    await expect.poll(answer, { timeout: 30_000 }).toBe(401)
  })

  it('keeps a Secret in force that is deleted with the policy, as long as that is held or frozen', async () => {
    const withKey = async () => {
      const headers = { authorization: 'Bearer key-of-ann' }
      return (await running.send(port, { host: hostOf('shop'), headers })).status
    }
    expect(await withKey()).toBe(200)
    running.remove('auth.yaml')
    await expect.poll(messages, { timeout: 30_000 }).toContain('protections of Gateway')
    expect((await run('approve')).stdout).toContain('Secret default/keys')
    expect([await withKey(), await answer()]).toEqual([200, 401])
    await run('freeze', '--reason', 'night', '--author', 'ops')
    await run('approve', '--emergency', '--reason', 'agreed', '--author', 'ops')
    expect((await run('status')).stdout).toContain('Secret default/keys')
    expect([await withKey(), await answer()]).toEqual([200, 401])
    await run('rollback', '--lift', '--reason', 'day', '--author', 'ops')
    await expect.poll(answer, { timeout: 30_000 }).toBe(200)
  })
})
