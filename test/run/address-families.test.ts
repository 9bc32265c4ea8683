import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { canUnshare } from '../support/namespaces.ts'

const namespace = ['--user', '--map-root-user', '--net']

async function play(...args: string[]): Promise<unknown> {
  const scene = join(import.meta.dirname, 'address-families-scene.ts')
  const command = [...namespace, process.execPath, '--disable-warning=ExperimentalWarning', scene]
  const { stdout } = await promisify(execFile)('unshare', [...command, ...args])
  return JSON.parse(stdout)
}

const served = {
  listener: 200,
  forwarded: 200,
  udp: 'ping',
  readiness: 200,
  stats: 200,
  admin: 200,
  console: 401,
}

/** `source.address` and `source.rawAddress` of the clients. */
const overIpv4 = ['127.0.0.1 127.0.0.1', '192.0.2.7 127.0.0.1']
const proxied = '192.0.2.9 127.0.0.9'

describe.skipIf(!canUnshare(namespace, ['ip', 'link']))(
  'default addresses (if the system permits network namespaces)',
  () => {
    it.each(['1', '2'])(
      'serve IPv4 and IPv6 with %s workers, and clients keep the addresses of their family',
      async (workers) => {
        expect(await play('both', workers)).toEqual({
          answers: { '127.0.0.1': served, '[::1]': served },
          proxiedAnswer: 'HTTP/1.1 200 OK',
          clients: [...overIpv4, '::1 ::1', '::1 ::1', proxied],
          logged: ['127.0.0.1', '192.0.2.7', '192.0.2.9', '[::1]'],
        })
      },
    )

    it('serve IPv4 if IPv6 is disabled', async () => {
      expect(await play('disabled')).toEqual({
        answers: { '127.0.0.1': served },
        proxiedAnswer: 'HTTP/1.1 200 OK',
        clients: [...overIpv4, proxied],
        logged: ['127.0.0.1', '192.0.2.7', '192.0.2.9'],
      })
    })
  },
)
