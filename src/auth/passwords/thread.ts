/** The entry of the thread that checks passwords, away from the loop that carries traffic. */
import { parentPort } from 'node:worker_threads'
import { verifyPassword } from './verify.ts'

/** What is asked of the thread; it answers with the id and whether they fit. */
export interface PasswordQuestion {
  readonly id: number
  readonly password: string
  readonly hash: string
}

export interface PasswordVerdict {
  readonly id: number
  readonly fits: boolean
}

parentPort?.on('message', ({ id, password, hash }: PasswordQuestion) => {
  let fits = false
  try {
    fits = verifyPassword(password, hash)
  } finally {
    parentPort?.postMessage({ id, fits } satisfies PasswordVerdict)
  }
})
