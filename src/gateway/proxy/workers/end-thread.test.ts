import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const script = fileURLToPath(new URL('../../../../test/proxy/end-stuck-thread.ts', import.meta.url))

it('lets a process exit although a thread does not end', async () => {
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const output = text(child.stdout)
  const [, signal] = await once(child, 'exit')
  expect(await output).toBe('ended')
  expect(signal).toBe('SIGKILL')
})
