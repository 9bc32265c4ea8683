import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { UsageReader } from './usage.ts'

/** Starts a child at each line of its input. */
const parent = `process.stdin.on('data', () => {
  const { pid } = require('node:child_process').spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' })
  console.log(pid)
})`

describe.runIf(process.platform === 'linux')('UsageReader', () => {
  it('counts the processes of a server, also those that start later and in their own session', async () => {
    const server = spawn(process.execPath, ['-e', parent], { detached: true })
    const pid = server.pid ?? 0
    const reader = new UsageReader()
    const read = () => reader.read(new Set([pid]))
    expect(read().get(pid)).toMatchObject({ processes: 1 })
    server.stdin.write('\n')
    const [child] = await once(server.stdout, 'data')
    const used = read()
    process.kill(Number(child))
    server.kill()
    expect(used.get(pid)?.processes).toBe(2)
    expect(used.get(pid)?.bytes).toBeGreaterThan(1_000_000)
    expect([...used.keys()]).toEqual([pid])
    await once(server, 'exit')
    expect(read().size).toBe(0)
  })
})
