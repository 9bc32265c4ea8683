/** The configuration of an earlier moment is put in force and held, and later changes wait. */

import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort, RunningGateway, sluice } from '../support/gateway.ts'
import { gateway, hostOf, httpRoute, manifest, policy } from '../support/manifests.ts'
import { startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'

/** A route that answers with a status of its own. */
const answering = (name: string, status: number) =>
  manifest(
    httpRoute(name, { hostnames: [hostOf(name)], rules: [{}] }),
    policy(name, `HTTPRoute/${name}`, { traffic: { directResponse: { status } } }),
  )

describe('sluice rollback and freeze', async () => {
  const port = await freePort()
  const running = useGateway(() => ({
    manifests: { 'base.yaml': manifest(gateway(port)), 'app.yaml': answering('app', 201) },
  }))
  const run = (command: string, ...args: string[]) =>
    sluice(command, ...args, '--log-file', running.logFile)
  const change = (command: string, ...args: string[]) =>
    run(command, ...args, '--reason', 'checkout fails', '--author', 'ops')
  const becomes = (name: string, status: number) =>
    running.sendUntil(port, { host: hostOf(name) }, (response) => response.status === status)
  const answers = async (name: string) => (await running.send(port, { host: hostOf(name) })).status
  /** Waits until the running gateway has read the newest manifest of an object. */
  const waits = async (object: string, generation: number) => {
    await expect
      .poll(async () => (await run('rollback')).stdout, { timeout: 20_000, interval: 100 })
      .toContain(`${object}: generation 1 in force, generation ${generation} waits`)
  }
  let first = 0

  it('puts an earlier configuration in force, and names what waits', async () => {
    await becomes('app', 201)
    await running.condition('GatewayPolicy', 'app', 'Attached', 'True')
    first = Number(JSON.parse((await run('status', '-o', 'json')).stdout).proxies[0].watermark)
    running.write('app.yaml', answering('app', 202))
    running.write('late.yaml', answering('late', 203))
    await becomes('late', 203)
    await becomes('app', 202)
    const { stdout, stderr, code } = await change('rollback', '--to', `${first}`)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.split('\n')).toEqual([
      `held at the configuration of position ${first} until \`sluice rollback --lift\`; objects not at their newest version: 3`,
      'GatewayPolicy default/app: generation 1 in force',
      'GatewayPolicy default/late: not in force',
      'HTTPRoute default/late: not in force',
      'in force at 1 of 1 proxies',
      '',
    ])
    expect([await answers('app'), await answers('late')]).toEqual([201, 404])
    const { message } = await running.condition('GatewayPolicy', 'app', 'Pinned', 'True')
    expect(message).toBe(
      `held at the configuration of position ${first} by ops (checkout fails): generation 2 waits until the pin is lifted`,
    )
    expect((await run('status')).stdout).toContain(
      `held: the configuration of position ${first}, since `,
    )
  })

  it('holds later changes, also those of new objects, across a restart', async () => {
    running.write('app.yaml', answering('app', 204))
    running.write('new.yaml', answering('new', 205))
    await waits('GatewayPolicy default/app', 3)
    expect([await answers('app'), await answers('new')]).toEqual([201, 404])
    await running.stop()
    running.write('late.yaml', answering('late', 206))
    await running.start()
    await becomes('app', 201)
    await expect
      .poll(async () => (await run('rollback')).stdout, { timeout: 20_000, interval: 100 })
      .toContain('GatewayPolicy default/late: not in force, generation 2 waits')
    expect([await answers('app'), await answers('late')]).toEqual([201, 404])
    expect((await run('replay')).stdout).toContain('of which 0 differ')
  })

  it('serves the newest manifests once the pin is lifted', async () => {
    const { stdout, code } = await change('rollback', '--lift')
    expect([code, stdout]).toEqual([0, expect.stringContaining('in force at 1 of 1 proxies')])
    const names = ['app', 'late', 'new'] as const
    expect(await Promise.all(names.map(answers))).toEqual([204, 206, 205])
    const status = await running.status('GatewayPolicy', 'app')
    expect(JSON.stringify(status)).not.toContain('Pinned')
    expect(await run('rollback')).toMatchObject({
      code: 1,
      stdout: 'nothing is held: the newest configuration is in force\n',
    })
  })

  it('goes back to the last configuration without a problem', async () => {
    running.write(
      'app.yaml',
      manifest(
        httpRoute('app', { hostnames: [hostOf('app')], rules: [{}] }),
        policy('app', 'HTTPRoute/app', {
          traffic: { authorization: { policy: { matchExpressions: ['request.'] } } },
        }),
      ),
    )
    await becomes('app', 500)
    expect((await change('rollback', '--to', 'last-good')).code).toBe(0)
    expect(await answers('app')).toBe(204)
    running.write('app.yaml', answering('app', 207))
    expect((await change('rollback', '--lift')).code).toBe(0)
    await becomes('app', 207)
  })

  it('holds only named objects, and lets them go when they change again', async () => {
    const args = ['--to', `${first}`, '--only', 'GatewayPolicy/app', '--until-changed']
    expect((await change('rollback', ...args)).code).toBe(0)
    expect([await answers('app'), await answers('late')]).toEqual([201, 206])
    running.write('late.yaml', answering('late', 208))
    await becomes('late', 208)
    expect(await answers('app')).toBe(201)
    running.write('app.yaml', answering('app', 209))
    await becomes('app', 209)
    expect((await change('rollback', '--lift')).code).toBe(0)
  })

  it('freezes the configuration that is in force', async () => {
    expect((await change('freeze')).code).toBe(0)
    running.write('app.yaml', answering('app', 210))
    await expect
      .poll(async () => (await run('rollback')).stdout, { timeout: 20_000, interval: 100 })
      .toContain('GatewayPolicy default/app: generation')
    expect(await answers('app')).toBe(209)
    expect((await change('rollback', '--lift')).code).toBe(0)
    await becomes('app', 210)
  })

  it('refuses what it cannot do, and changes nothing', async () => {
    const refused: [string[], string][] = [
      [['rollback', '--to', '1'], '--reason is required'],
      [['rollback', '--to', 'yesterday', '--reason', 'x'], 'neither a position, a time'],
      [['rollback', '--to', '2999-01-01T00:00:00Z', '--reason', 'x'], 'is in the future'],
      [['rollback', '--to', '999999', '--reason', 'x'], 'is after the end of the log'],
      [['rollback', '--lift', '--reason', 'x'], 'nothing is held'],
      [['rollback', '--only', 'HTTPRoute/app', '--reason', 'x'], 'need --to'],
      [['rollback', '--lift', '--to', '1', '--reason', 'x'], "'--lift' cannot be used with"],
      [['freeze', '--until', '2001-01-01', '--reason', 'x'], 'is in the past'],
      [['freeze', '--only', 'HTTPRoute/ap', '--reason', 'x'], 'HTTPRoute/ap: there is no such'],
    ]
    for (const [[command = '', ...args], problem] of refused) {
      const { code, stdout, stderr } = await run(command, ...args)
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toContain(problem)
    }
  })
})

describeWithParts(['nats-server'], 'sluice rollback beside gateways on NATS', async () => {
  const server = useFixture(startNatsServer, (one) => one.remove())
  const port = await freePort()
  const addresses = ['127.0.0.1', '127.0.0.2', '127.0.0.3']
  const gateways: RunningGateway[] = []

  it('holds at all replicas, at new ones, and after the leader and old events are gone', async () => {
    const start = async (address: string, status: number) => {
      const running = new RunningGateway({
        manifests: {
          'base.yaml': manifest(gateway(port)),
          'app.yaml': answering('app', status),
        },
        nats: server.url,
        env: { XDG_STATE_HOME: join(server.folder, address) },
        args: ['--bind-address', address],
      })
      gateways.push(running)
      await running.start()
      return running
    }
    const become = (status: number, from: number) =>
      Promise.all(
        gateways
          .slice(from)
          .map((running, at) =>
            running.sendUntil(
              port,
              { host: hostOf('app'), address: addresses[from + at] ?? '' },
              (response) => response.status === status,
            ),
          ),
      )
    const change = (...args: string[]) =>
      sluice('rollback', ...args, '--nats', server.url, '--reason', 'checkout fails')
    try {
      const [first = '', second = '', third = ''] = addresses
      const leader = await start(first, 201)
      const other = await start(second, 201)
      await become(201, 0)
      const { stdout } = await sluice('status', '--nats', server.url, '-o', 'json')
      const [{ watermark }] = JSON.parse(stdout).proxies
      for (const running of [leader, other]) running.write('app.yaml', answering('app', 202))
      await become(202, 0)
      expect(await change('--to', `${watermark}`)).toMatchObject({ code: 0, stderr: '' })
      await become(201, 0)
      await leader.kill()
      other.write('app.yaml', answering('app', 203))
      await expect
        .poll(async () => (await sluice('rollback', '--nats', server.url)).stdout, {
          timeout: 60_000,
          interval: 200,
        })
        .toContain('GatewayPolicy default/app: generation 1 in force, generation 3 waits')
      await other.stop()
      const log = await openNatsLog({ servers: server.url, create: false })
      await log.purgeUpTo((await log.snapshots()).at(-1)?.position ?? (0 as never))
      await log.close()
      await start(third, 203)
      await become(201, 2)
      expect((await change('--lift')).code).toBe(0)
      await become(203, 2)
    } finally {
      for (const running of gateways) await running.dispose()
    }
  }, 180_000)
})
