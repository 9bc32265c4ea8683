import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { canUnshare } from '../support/namespaces.ts'

const namespace = ['--user', '--map-root-user', '--net']

describe.skipIf(!canUnshare(namespace, ['ip', 'link']))(
  'a backend that is cut off (where a test may make a network)',
  () => {
    it('[Keepalive.retries] [Keepalive.interval] is given up after so many probes, that far apart', async () => {
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
