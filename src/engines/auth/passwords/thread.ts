/** Entry point of the thread that checks passwords, so that hashing does not block the event loop. */
import { parentPort } from 'node:worker_threads'
import { verifyPassword } from './verify.ts'

/** Message to the thread, which replies with a `PasswordVerdict` of the same id. */
export interface PasswordCheck {
  readonly id: number
  readonly password: string
  readonly hash: string
}

export interface PasswordVerdict {
  readonly id: number
  readonly fits: boolean
}

parentPort?.on('message', ({ id, password, hash }: PasswordCheck) => {
  let fits = false
  try {
    fits = verifyPassword(password, hash)
  } finally {
    parentPort?.postMessage({ id, fits } satisfies PasswordVerdict)
  }
})
