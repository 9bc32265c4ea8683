/** Changes are delivered to a part of the workers first, and taken back if these fail more often. */
import { describe, expect, it } from 'vitest'
import { useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { gateway, hostOf, httpRoute, manifest, policy } from '../support/manifests.ts'

const answering = (name: string, status: number) =>
  manifest(
    httpRoute(name, { hostnames: [hostOf(name)], rules: [{}] }),
    policy(name, `HTTPRoute/${name}`, { traffic: { directResponse: { status } } }),
  )

const parameters = (rollout: object) => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'GatewayParameters',
  metadata: { name: 'steps' },
  spec: { rollout },
})

const parametersRef = { group: 'sluice.dev', kind: 'GatewayParameters', name: 'steps' }

interface ShownRollout {
  readonly position: number
  readonly state: string
  readonly reason?: string
  readonly steps: readonly { readonly number: number; readonly proxies: readonly string[] }[]
}

describe('sluice run with a rollout over two workers', async () => {
  const port = await freePort()
  const rollout = (hold: string) =>
    manifest(parameters({ steps: [{ proxies: 1 }, { proxies: '100%' }], hold }))
  const running = useGateway(() => ({
    manifests: {
      'base.yaml': manifest(gateway(port, { infrastructure: { parametersRef } })),
      'steps.yaml': rollout('1s'),
      'app.yaml': answering('app', 201),
    },
    args: ['--workers', '2'],
  }))
  const run = (command: string, ...args: string[]) =>
    sluice('rollout', command, ...args, '--log-file', running.logFile)
  const decide = (command: string, ...args: string[]) =>
    run(command, ...args, '--reason', 'agreed', '--author', 'ops')
  const shown = async (): Promise<readonly ShownRollout[]> =>
    JSON.parse((await run('status', '-o', 'json')).stdout).rollouts
  /** Sends a request over a new connection, so that any worker may get it. */
  const answer = async (name = 'app') =>
    (await running.send(port, { host: hostOf(name), headers: { connection: 'close' } })).status
  const answers = async (count: number) => {
    const found = new Set<number>()
    for (let sent = 0; sent < count; sent++) found.add(await answer())
    return [...found].sort()
  }
  const log = async () => (await sluice('log', '--log-file', running.logFile)).stdout
  const state = async () => (await shown()).map((one) => one.state).join()
  const becomes = (status: number) =>
    expect.poll(() => answers(12), { timeout: 30_000, interval: 50 }).toEqual([status])

  it('delivers a change to one worker, and to all after the hold', async () => {
    await becomes(201)
    running.write('app.yaml', answering('app', 202))
    await expect.poll(() => answers(12), { timeout: 30_000, interval: 20 }).toEqual([201, 202])
    await becomes(202)
    expect((await run('status')).code).toBe(1)
    expect(await log()).toMatch(/rollout \d+, step 1: local\/0\n/)
    expect(await log()).toMatch(/rollout \d+, Finished \(gateway: all steps are done\)/)
  })

  it('takes a change back whose worker fails more often, and keeps it out of force across a restart', async () => {
    running.write('steps.yaml', rollout('10m'))
    await expect
      .poll(log, { timeout: 30_000 })
      .toMatch(/skipped .*GatewayParameters default\/steps/)
    running.write('app.yaml', answering('app', 503))
    const isTakenBack = async () => {
      await answers(40)
      return state()
    }
    await expect.poll(isTakenBack, { timeout: 60_000, interval: 10 }).toBe('rolledBack')
    const [{ position, reason } = { position: 0 }] = await shown()
    expect(reason).toMatch(
      /^Gateway default\/edge, .*: \d+ of \d+ requests failed with the change, 0 of \d+ without$/,
    )
    await becomes(202)
    const { message } = await running.condition('GatewayPolicy', 'app', 'RolledBack', 'True')
    expect(message).toContain('generation 3 was rolled back')
    await running.stop()
    await running.start()
    await becomes(202)
    expect((await sluice('status', '--log-file', running.logFile)).stdout).toContain(
      `rollout ${position} was rolled back (sluice rollout)`,
    )
  })

  it('is paused, resumed, aborted and finished by operators, across a restart', async () => {
    running.write('app.yaml', answering('app', 204))
    await expect.poll(state, { timeout: 30_000 }).toBe('progressing')
    expect((await decide('pause')).stdout).toMatch(
      /^rollout \d+ is paused\nGatewayPolicy default\/app\n$/,
    )
    expect(await state()).toBe('paused')
    expect(await decide('pause')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/rollout \d+ is paused: it cannot be paused/),
    })
    await running.stop()
    await running.start()
    await expect.poll(() => answers(12), { timeout: 30_000, interval: 20 }).toEqual([202, 204])
    await decide('resume')
    expect((await run('resume')).stderr).toContain('--reason is required')
    const { stdout } = await decide('abort')
    expect(stdout).toMatch(/^rollout \d+ is rolled back\nGatewayPolicy default\/app\nin force at 1/)
    await becomes(202)
    const [{ position } = { position: 0 }] = await shown()
    await decide('finish', `${position}`)
    await becomes(204)
    expect((await run('status', `${position}`)).stderr).toContain(
      `rollout ${position} is neither under way nor rolled back: it is finished`,
    )
    const before = await sluice('rollout', '--log-file', running.logFile, 'pause', '--reason', 'y')
    expect(before.stderr).toContain(
      'write options after the verb: sluice rollout pause --reason y …',
    )
    expect((await run('status', '--nonsense')).stderr).toContain("unknown option '--nonsense'")
    expect((await sluice('replay', '--log-file', running.logFile)).stdout).toContain(
      'of which 0 differ',
    )
  })

  it('keeps the old version in force if only the worker with the change is left after a restart', async () => {
    running.write('app.yaml', answering('app', 205))
    await expect.poll(() => answers(12), { timeout: 30_000, interval: 20 }).toEqual([204, 205])
    await running.stop()
    await running.start(['--workers', '1'])
    expect(await answers(20)).toEqual([204])
    await expect.poll(state, { timeout: 30_000 }).toBe('paused')
    expect((await shown())[0]?.reason).toContain('no proxy without the change is left to compare')
    expect(await answers(20)).toEqual([204])
    await running.stop()
    await running.start()
    await expect.poll(() => answers(12), { timeout: 30_000, interval: 20 }).toEqual([204, 205])
    const pin = ['--log-file', running.logFile, '--reason', 'agreed', '--author', 'ops']
    const frozen = await sluice('freeze', ...pin)
    expect(frozen.stdout).toContain(
      'objects not at their newest version: 1\nGatewayPolicy default/app: its newest version waits',
    )
    await becomes(204)
    await sluice('rollback', '--lift', ...pin)
    await expect.poll(() => answers(12), { timeout: 30_000, interval: 20 }).toEqual([204, 205])
    await decide('finish')
    await becomes(205)
  })

  it('delivers at once what no Gateway with steps serves', async () => {
    running.write('other.yaml', manifest(httpRoute('other', { parentRefs: [{ name: 'none' }] })))
    await expect.poll(log, { timeout: 30_000 }).toMatch(/skipped .*HTTPRoute default\/other/)
    expect((await run('status')).code).toBe(1)
  })
})
