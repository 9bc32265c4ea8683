/** The process that serves this page, and what it offers. Without one, some views have nothing to show. */
import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { type About, ConsoleServer, forgetToken, hasToken, ServerError } from '../source/server.ts'
import { nothingShown, type Shown } from './worker-client.ts'

export type Offer = keyof About['offers']

/** Undefined if files are shown, or before the process has answered. */
export const served = signal<{ readonly server: ConsoleServer; readonly about: About } | undefined>(
  undefined,
)

/** Whether this person may change something, such as approve tools. */
export const mayAct = (): boolean => served.value?.about.offers.actions === true

const retryMs = 2_000

/** Asks the process what it offers, until it answers. */
export async function connect(key: string): Promise<void> {
  const server = new ConsoleServer(key)
  for (let about: About | undefined; about === undefined; ) {
    try {
      about = await server.about()
      served.value = { server, about }
    } catch (error) {
      // The key of a process that has ended never becomes valid again.
      if (error instanceof ServerError && error.status === 401) {
        if (hasToken()) forgetToken()
        return
      }
      await new Promise((resolve) => setTimeout(resolve, retryMs))
    }
  }
}

type Load<Value> = (server: ConsoleServer, signal: AbortSignal) => Promise<Value>

/**
 * What the process answers. It is loaded again if `key` changes and, if `everyMs` is given, from time to time
 * while the page is visible. After an error, the last answer stays.
 */
export function useServed<Value>(key: string, load: Load<Value>, everyMs?: number): Shown<Value> {
  const [shown, setShown] = useState<Shown<Value>>(nothingShown)
  const server = served.value?.server
  useEffect(() => {
    if (server === undefined) return
    const ending = new AbortController()
    const { signal } = ending
    const run = async () => {
      setShown((before) => ({ ...before, isBusy: true }))
      const change = await load(server, signal).then(
        (value) => ({ value, error: undefined }),
        (error: Error) => ({ error: error.message }),
      )
      if (!signal.aborted) setShown((before) => ({ ...before, ...change, isBusy: false }))
    }
    run()
    if (everyMs === undefined) return () => ending.abort()
    const timer = setInterval(() => !document.hidden && run(), everyMs)
    return () => {
      clearInterval(timer)
      ending.abort()
    }
  }, [server, key, everyMs])
  return shown
}
