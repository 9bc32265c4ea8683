/** What `sluice what-if` says about records that have only a part of the traffic. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  gateway,
  hostOf,
  manifest,
  policy,
  routeByHost,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-what-if-records-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const change = join(folder, 'change.yaml')
const authorization = { action: 'Deny', policy: { matchExpressions: ['true'] } }
writeFileSync(change, manifest(policy('deny', 'HTTPRoute/shop', { traffic: { authorization } })))

describe.each([
  {
    setting: 'sample',
    args: [],
    total: 9,
    changed: 8,
    caveat:
      'only a part of the traffic (record: sample). A change of less than about 33% of the requests may not show.',
  },
  {
    setting: 'errors',
    args: ['--record', 'errors'],
    total: 1,
    changed: 0,
    caveat: 'the records have only failed requests (record: errors)',
  },
  {
    setting: '0.5%',
    args: ['--record', '0.5%'],
    caveat: 'only a part of the traffic (record: 0.5%)',
  },
  { setting: 'all', args: ['--record', 'all'], total: 9, changed: 8, caveat: undefined },
])(
  'records that were made with record: $setting',
  async ({ setting, args, total, changed, caveat }) => {
    const port = await freePort()
    const upstream = useUpstream('shop')
    const records = mkdtempSync(join(folder, 'records-'))
    const running = useGateway(() => ({
      manifests: [
        gateway(port),
        staticBackend('main', upstream.port),
        routeByHost('shop', toBackend('main')),
      ],
      args: ['--record-dir', records, ...args],
    }))

    beforeAll(async () => {
      for (let n = 0; n < 8; n++) await running.send(port, { host: hostOf('shop'), path: `/${n}` })
      await running.send(port, { host: 'nowhere.example.com' })
      await running.stop()
    })

    const whatIf = (...more: string[]) =>
      sluice('what-if', '--log-file', running.logFile, '-f', change, '--overlay', ...more)

    it.each(['--record-dir', '--requests'])(
      'are named in the report of what-if %s',
      async (option) => {
        const { stdout } = await whatIf(option, records, '-o', 'json')
        const { requests } = JSON.parse(stdout)
        expect(requests.records).toMatchObject({
          settings: [setting],
          isPartial: setting !== 'all',
        })
        if (total !== undefined) expect(requests).toMatchObject({ total, changed })
        for (const output of ['text', 'markdown']) {
          const { stdout: text } = await whatIf(option, records, '-o', output)
          if (caveat === undefined) expect(text).not.toContain('untested')
          else expect(text).toContain(caveat)
        }
      },
    )

    it('have the setting', async () => {
      const { stdout } = await sluice('decisions', '--record-dir', records, '-o', 'json')
      const [line = '{}'] = stdout.split('\n')
      expect(JSON.parse(line)).toMatchObject({ setting })
    })
  },
)

describe('a folder without records', () => {
  it('is no proof that a change is safe', async () => {
    const base = join(folder, 'base.yaml')
    writeFileSync(
      base,
      manifest(gateway(1), staticBackend('main', 1), routeByHost('shop', toBackend('main'))),
    )
    const records = mkdtempSync(join(folder, 'empty-'))
    const { stdout } = await sluice(
      'what-if',
      '--from',
      base,
      '-f',
      change,
      '--overlay',
      '--record-dir',
      records,
    )
    expect(stdout).toContain('There are no records, so no request was tested.')
  })
})
