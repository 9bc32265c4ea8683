import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort, sluice, startGateway } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, staticBackend, toBackend } from '../support/manifests.ts'

/** The log of a gateway whose backend was taken away, and then put back. */
let folder: string
let log: string[]
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-bisect-'))
  const path = join(folder, 'events.db')
  const backend = manifest(staticBackend('main', 9))
  const route = httpRoute('app', { rules: [{ backendRefs: [toBackend('main')] }] })
  const gw = await startGateway({
    manifests: { 'base.yaml': manifest(gateway(await freePort()), route), 'backend.yaml': backend },
  })
  try {
    await gw.condition('HTTPRoute', 'app', 'ResolvedRefs', 'True')
    gw.remove('backend.yaml')
    await gw.condition('HTTPRoute', 'app', 'ResolvedRefs', 'False')
    gw.write('backend.yaml', backend)
    await gw.condition('HTTPRoute', 'app', 'ResolvedRefs', 'True')
    await gw.stop()
    copyFileSync(gw.logFile, path)
  } finally {
    await gw.dispose()
  }
  log = ['--log-file', path]
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const expectation = 'HTTPRoute/default/app ResolvedRefs=True'

describe('sluice bisect', () => {
  it('names the event that broke an expectation, and the event that fixed it', async () => {
    const { code, stdout } = await sluice('bisect', '--expect', expectation, ...log)
    expect(code).toBe(0)
    const [first, second, third, ...rest] = stdout.trimEnd().split('\n')
    expect(first).toMatch(/^holds since event \d+/)
    expect(second).toMatch(
      /^broken by event \d+, \S+Z: resource\.deleted GatewayBackend default\/main/,
    )
    expect(third).toMatch(/^holds since .*resource\.applied GatewayBackend default\/main/)
    expect(rest).toEqual([])
  })

  it('reads the log up to a position or a time, like every offline command', async () => {
    const { stdout } = await sluice('bisect', '--expect', expectation, '-o', 'json', ...log)
    const { turns } = JSON.parse(stdout) as { turns: { position: number; time: string }[] }
    const [, broken] = turns
    if (broken === undefined) throw new Error('nothing was broken')
    const at = (moment: string) => ['--at', moment, ...log]
    const before = at(String(broken.position - 1))
    expect((await sluice('bisect', '--expect', expectation, ...before)).code).toBe(0)
    const then = at(broken.time)
    expect((await sluice('bisect', '--expect', expectation, ...then)).code).toBe(1)
    const { stdout: status } = await sluice('status', ...then)
    expect(status).toMatch(/HTTPRoute default\/app .*ResolvedRefs +False +BackendNotFound/)
    const replay = await sluice('replay', '-o', 'json', ...at(String(broken.position)))
    expect(JSON.parse(replay.stdout)).toMatchObject({ position: broken.position, different: [] })
  })

  it('exits with 1 if the expectation never held, and with 2 if the input is invalid', async () => {
    const never = await sluice('bisect', '--expect', 'HTTPRoute/app Programmed=True', ...log)
    expect(never.code).toBe(1)
    expect(never.stdout).toContain('HTTPRoute default/app never had Programmed=True')
    const wrong = await sluice('bisect', '--expect', 'Programmed', ...log)
    expect(wrong.code).toBe(2)
    expect(wrong.stderr).toContain("--expect 'Programmed' is not")
    const time = await sluice('status', '--at', 'yesterday', ...log)
    expect(time.code).toBe(2)
    expect(time.stderr).toContain('--at yesterday')
  })
})

describe('sluice explain condition', () => {
  it('shows each change of a condition with the event that caused it', async () => {
    const path = 'HTTPRoute/default/app'
    const { code, stdout } = await sluice('explain', 'condition', path, '-o', 'json', ...log)
    expect(code).toBe(0)
    const { changes } = JSON.parse(stdout) as {
      changes: { type: string; status: string; reason: string; cause: string }[]
    }
    const resolved = changes
      .filter(({ type }) => type === 'ResolvedRefs')
      .map(({ status, reason, cause }) => [status, reason, cause.split(',')[0]])
    expect(resolved.slice(-2)).toEqual([
      ['False', 'BackendNotFound', 'resource.deleted GatewayBackend default/main'],
      ['True', 'ResolvedRefs', 'resource.applied GatewayBackend default/main'],
    ])
  })

  it('prints the same changes as text, and exits with 1 if the object has no conditions', async () => {
    const text = await sluice('explain', 'condition', 'HTTPRoute/app', ...log)
    expect(text.stdout).toMatch(/event \d+, \S+Z: resource\.deleted GatewayBackend default\/main/)
    expect(text.stdout).toMatch(/ {2}ResolvedRefs \(parent Gateway edge\): False BackendNotFound/)
    const none = await sluice('explain', 'condition', 'HTTPRoute/other', ...log)
    expect(none.code).toBe(1)
    expect(none.stderr).toContain('no such object; of kind HTTPRoute there is default/app')
  })
})
