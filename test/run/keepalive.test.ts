import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { canUnshare } from '../support/namespaces.ts'

const namespace = ['--user', '--map-root-user', '--net']

describe.skipIf(!canUnshare(namespace, ['ip', 'link']))(
  'a backend that becomes unreachable (if the system permits network namespaces)',
  () => {
    it('[Keepalive.retries] [Keepalive.interval] is disconnected after the configured number of probes at the configured interval', async () => {
      const scene = join(import.meta.dirname, 'keepalive-scene.ts')
      const command = [...namespace, process.execPath, scene]
      const { stdout } = await promisify(execFile)('unshare', command)
      expect(JSON.parse(stdout)).toEqual({
        before: ['gone', 'patient', 'slow'],
        after: ['patient', 'slow'],
      })
    })
  },
)
