/** Secrets in files whose values come from the environment of the gateway, or from files. */
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  gateway,
  hostOf,
  manifest,
  routeByHost,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import type { ReceivedRequest } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const key = 'sk-of-the-environment-4711'

const reached = (name: string, entry: string) => [
  secret(name, { Authorization: entry }),
  staticBackend(name, upstream.port, { auth: { secretRef: { name } } }),
  routeByHost(name, toBackend(name)),
]

const port = await freePort()
const upstream = useUpstream('main')
const running = useGateway(() => ({
  env: { SLUICE_TEST_KEY: key },
  manifests: {
    'set.yaml': manifest(gateway(port), ...reached('set', `Bearer \${env:SLUICE_TEST_KEY}`)),
    'missing.yaml': manifest(...reached('missing', `\${env:SLUICE_TEST_MISSING}`)),
  },
}))

const send = (name: string) => running.send(port, { host: hostOf(name) })

describe('a value of the environment', () => {
  it('sends the value of the variable, which is not in the log', async () => {
    const { body } = await send('set')
    expect((JSON.parse(body) as ReceivedRequest).headers.authorization).toBe(`Bearer ${key}`)
    const { stdout } = await sluice('log', '--log-file', running.logFile, '-o', 'json')
    expect(stdout).toContain('Secret')
    expect(stdout + readFileSync(running.logFile).toString('latin1')).not.toContain(key)
  })

  it('refuses only the Secret with a variable that is not set, and says where', async () => {
    await waitFor('the problem', () =>
      /missing\.yaml:\d+:\d+: Secret default\/missing: stringData\["Authorization"\]: environment variable SLUICE_TEST_MISSING is not set/.test(
        running.stderr,
      ),
    )
    expect((await send('missing')).status).toBe(500)
    expect((await send('set')).status).toBe(200)
  })

  it('is only a warning where the gateway does not run', async () => {
    const file = join(running.manifests, 'missing.yaml')
    const checked = await sluice('validate', '-f', running.manifests)
    expect(checked.stdout).toContain(`${file}:`)
    expect(checked.stdout).toContain(
      'warning: Secret default/missing: stringData["Authorization"]: environment variable SLUICE_TEST_MISSING is not set',
    )
    expect(checked.code).toBe(0)
  })
})

describe('a value of a file', () => {
  const authorization = async (name: string) => {
    const { status, body } = await send(name)
    if (status !== 200) return status
    return (JSON.parse(body) as ReceivedRequest).headers.authorization
  }
  const becomes = (name: string, value: string | number) =>
    waitFor(String(value), async () => (await authorization(name)) === value)

  it('follows the file, however it is written, and is not in the log', async () => {
    const keys = join(running.folder, 'keys')
    mkdirSync(keys)
    const file = join(keys, 'followed')
    writeFileSync(file, 'first-4711\n')
    running.write(
      'followed.yaml',
      manifest(...reached('followed', `Bearer \${file:../keys/followed}`)),
    )
    await becomes('followed', 'Bearer first-4711')
    writeFileSync(file, 'second-4711\n')
    await becomes('followed', 'Bearer second-4711')
    writeFileSync(`${file}.new`, 'third-4711')
    renameSync(`${file}.new`, file)
    await becomes('followed', 'Bearer third-4711')
    const { stdout } = await sluice('log', '--log-file', running.logFile, '-o', 'json')
    expect(stdout).toContain('followed')
    expect(stdout + readFileSync(running.logFile).toString('latin1')).not.toContain('-4711')
  })

  it('follows a mounted volume, whose files are links that are replaced together', async () => {
    const volume = join(running.folder, 'volume')
    for (const version of ['..one', '..two']) {
      mkdirSync(join(volume, version), { recursive: true })
      writeFileSync(join(volume, version, 'key'), `of${version}`)
    }
    symlinkSync('..one', join(volume, '..data'))
    symlinkSync('..data/key', join(volume, 'key'))
    running.write('mounted.yaml', manifest(...reached('mounted', `\${file:${volume}/key}`)))
    await becomes('mounted', 'Bearer of..one')
    symlinkSync('..two', join(volume, '..new'))
    renameSync(join(volume, '..new'), join(volume, '..data'))
    await becomes('mounted', 'Bearer of..two')
  })

  it('refuses only the Secret whose file is missing, and takes the file when it appears', async () => {
    const file = join(running.folder, 'late')
    running.write('late.yaml', manifest(...reached('late', `\${file:../late}`)))
    await waitFor('the problem', () =>
      running.stderr.includes(
        `: Secret default/late: stringData["Authorization"]: file ${file} cannot be read: no such file or folder`,
      ),
    )
    expect(running.stderr).toMatch(/late\.yaml:\d+:\d+: Secret default\/late/)
    await becomes('late', 500)
    expect(await authorization('set')).toBe(`Bearer ${key}`)
    writeFileSync(file, 'at-last')
    await becomes('late', 'Bearer at-last')
  })

  it('stays in force if the file is removed, and the problem names the place', async () => {
    const file = join(running.folder, 'removed')
    writeFileSync(file, 'stays')
    running.write('removed.yaml', manifest(...reached('removed', `\${file:../removed}`)))
    await becomes('removed', 'Bearer stays')
    rmSync(file)
    await waitFor('the problem', () => running.stderr.includes(`file ${file} cannot be read`))
    expect(await authorization('removed')).toBe('Bearer stays')
  })
})
