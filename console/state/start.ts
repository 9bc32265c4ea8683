/** Chooses the source of events: the process that serves this page, or files that the reader opens. */
import { signal } from '@preact/signals'
import {
  ConsoleServer,
  keepToken,
  onNewKey,
  type SignInMethod,
  signInMethod,
  takeKey,
} from '../source/server.ts'
import { connect } from './served.ts'
import { open } from './worker-client.ts'

/** Whether a process serves this page, and follows its own log. */
export const isServed = signal(false)

/** How the page waits for a person to sign in: with a token, or at a provider. */
export const needsSignIn = signal<SignInMethod | undefined>(undefined)

export function startSource(): void {
  onNewKey(openServed)
  openServed()
}

/** Tries a token, and opens the log if it is accepted. @throws ServerError */
export async function signIn(token: string): Promise<void> {
  await new ConsoleServer(token).about()
  keepToken(token)
  needsSignIn.value = undefined
  openServed()
}

function openServed(): void {
  const key = takeKey()
  if (key === undefined) {
    signInMethod().then((method) => {
      needsSignIn.value = method
    })
    return
  }
  isServed.value = true
  open({ from: 'server', key })
  connect(key)
}

export const openFile = (file: File): Promise<void> => open({ from: 'file', file, name: file.name })
