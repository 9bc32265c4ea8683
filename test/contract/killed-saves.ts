import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'vitest'
import type { EventLog } from '../../src/control/log/index.ts'
import { contentOf } from './save-forever.ts'

/** Kills a process several times while it saves snapshots, and checks what it leaves. */
export async function expectWholeSnapshots(
  target: string,
  open: () => Promise<EventLog>,
): Promise<void> {
  const saved = new Set<number>()
  for (const count of [2, 3, 4]) {
    for (const position of await saveUntilKilled(target, count)) saved.add(position)
    const log = await open()
    const stored = await log.snapshots()
    expect(stored.map(({ position }) => position)).toEqual(expect.arrayContaining([...saved]))
    for (const { position } of stored) {
      const snapshot = await log.loadSnapshot({ atMost: position })
      expect(snapshot?.position).toBe(position)
      const isWhole = [position, -position].every((part, index) =>
        Buffer.from(snapshot?.chunks[index] ?? []).equals(contentOf(part)),
      )
      expect(isWhole).toBe(true)
    }
    expect(await log.lastPosition()).toBeGreaterThanOrEqual(Math.max(...saved))
    await log.close()
  }
}

/** Lets a child save snapshots, and kills it when it begins with the one of number `count`. */
async function saveUntilKilled(target: string, count: number): Promise<number[]> {
  const script = join(import.meta.dirname, 'save-forever.ts')
  const child = spawn(process.execPath, ['--no-warnings', script, target], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const saved: number[] = []
  let begun = 0
  for await (const line of createInterface({ input: child.stdout })) {
    const [what, position] = line.split(' ')
    if (what === 'saved') saved.push(Number(position))
    else if (++begun === count) child.kill('SIGKILL')
  }
  expect((await exited)[1]).toBe('SIGKILL')
  return saved
}
