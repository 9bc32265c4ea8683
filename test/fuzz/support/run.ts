/** Runs targets in turn. An input that throws, hangs or kills its thread is kept in the corpus. */
import { createHash } from 'node:crypto'
import { globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { inputOf } from './mutate.ts'
import type { FuzzTarget } from './target.ts'
import type { WorkerMessage, WorkerTask } from './worker.ts'

/** An input that waits this many times `hangSeconds`, with or without CPU, hangs too. */
const mostWaits = 15

/** Threads of a target that may hang or die before it is given up. */
const mostFailures = 3

const folder = join(import.meta.dirname, '..')

export interface Finding {
  readonly error: string
  /** Where the input lies now, from the root of the repository. */
  readonly file: string
}

export interface TargetResult {
  readonly name: string
  readonly runs: number
  readonly findings: readonly Finding[]
}

export interface FuzzOptions {
  readonly seed: number
  /** For each target. */
  readonly seconds: number
  /** An input that takes more seconds of CPU hangs. */
  readonly hangSeconds: number
}

export const targetNames: readonly string[] = globSync('targets/*.ts', { cwd: folder })
  .map((file) => basename(file, '.ts'))
  .sort()

const fileOf = (name: string) => join(folder, 'targets', `${name}.ts`)

export async function loadTarget(name: string): Promise<FuzzTarget> {
  const { default: target } = (await import(fileOf(name))) as { default: FuzzTarget }
  return target
}

/** Inputs that failed once, by name. */
export function corpusOf(name: string): { readonly file: string; readonly input: Buffer }[] {
  const path = join(folder, 'corpus', name)
  try {
    return readdirSync(path)
      .sort()
      .map((file) => ({ file, input: readFileSync(join(path, file)) }))
  } catch {
    return []
  }
}

function keep(name: string, input: Uint8Array): string {
  const file = createHash('sha256').update(input).digest('hex').slice(0, 12)
  mkdirSync(join(folder, 'corpus', name), { recursive: true })
  writeFileSync(join(folder, 'corpus', name, file), input)
  return `test/fuzz/corpus/${name}/${file}`
}

/** How one thread ended: by itself, or with the input of `index` under way. */
type ThreadEnd =
  | { readonly kind: 'over'; readonly next: number }
  | { readonly kind: 'failed'; readonly index: number; readonly error: string }

function runThread(
  task: WorkerTask,
  hangSeconds: number,
  onFinding: (finding: Finding) => void,
  name: string,
): Promise<ThreadEnd> {
  const current = new Int32Array(task.progress)
  const indexNow = () => Atomics.load(current, 0)
  return new Promise((resolve) => {
    const worker = new Worker(join(import.meta.dirname, 'worker.ts'), { workerData: task })
    let last = ''
    let waited = 0
    let cpu = process.cpuUsage()
    const watch = setInterval(() => {
      const now = `${indexNow()}.${Atomics.load(current, 1)}`
      waited = now === last ? waited + 1 : 0
      if (waited === 0) cpu = process.cpuUsage()
      last = now
      // On a busy machine an input may wait for its turn much longer than it runs.
      const { user, system } = process.cpuUsage(cpu)
      const isSlow = (user + system) / 1e6 >= hangSeconds || waited >= hangSeconds * mostWaits
      if (!isSlow) return
      finish({ kind: 'failed', index: indexNow(), error: `no end after ${hangSeconds} seconds` })
      void worker.terminate()
    }, 1000)
    const finish = (end: ThreadEnd) => {
      clearInterval(watch)
      resolve(end)
    }
    worker.on('message', (message: WorkerMessage) => {
      if (message.type === 'finding') {
        onFinding({ error: message.error, file: keep(name, message.input) })
      } else if (message.type === 'end') finish({ kind: 'over', next: message.next })
    })
    worker.on('error', (error) => {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
      finish({ kind: 'failed', index: indexNow(), error: text })
    })
    worker.on('exit', (code) => {
      finish({ kind: 'failed', index: indexNow(), error: `the thread ended with ${code}` })
    })
  })
}

/** Runs one target for its time. If a thread dies or hangs, a new one continues after that input. */
export async function runTarget(
  name: string,
  { seed, seconds, hangSeconds }: FuzzOptions,
  onFinding: (finding: Finding) => void,
): Promise<TargetResult> {
  const target = await loadTarget(name)
  const findings: Finding[] = []
  const add = (finding: Finding) => {
    findings.push(finding)
    onFinding(finding)
  }
  const until = performance.now() + seconds * 1000
  let from = 0
  for (let failed = 0; failed < mostFailures; failed++) {
    const milliseconds = until - performance.now()
    if (milliseconds <= 0) break
    const progress = new SharedArrayBuffer(8)
    const task = { file: fileOf(name), seed, milliseconds, from, progress }
    const end = await runThread(task, hangSeconds, add, name)
    if (end.kind === 'over') {
      from = end.next
      break
    }
    add({ error: end.error, file: keep(name, inputOf(target, seed, end.index)) })
    from = end.index + 1
  }
  return { name, runs: from, findings }
}
