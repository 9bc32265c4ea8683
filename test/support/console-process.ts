import { type ChildProcess, spawn } from 'node:child_process'
import { launcher } from './gateway.ts'
import { waitFor } from './wait-for.ts'

/** A `sluice console` process. */
export class ConsoleProcess {
  stdout = ''
  stderr = ''
  readonly #child: ChildProcess

  constructor(...args: string[]) {
    const all = ['console', '--no-open', '--console-address', '127.0.0.1:0', ...args]
    this.#child = spawn(launcher, all, { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child.stdout?.on('data', (piece) => {
      this.stdout += piece
    })
    this.#child.stderr?.on('data', (piece) => {
      this.stderr += piece
    })
  }

  url(): Promise<URL> {
    return waitFor('the URL', () => urlIn(this.stdout))
  }

  async dispose(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('close', resolve))
    this.#child.kill('SIGTERM')
    await ended
  }
}

/** The newest URL that a process has printed. */
export function urlIn(text: string): URL | undefined {
  const url = [...text.matchAll(/^console: (http:\S+)$/gm)].at(-1)?.[1]
  return url === undefined ? undefined : new URL(url)
}
