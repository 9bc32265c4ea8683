/** The page's side of the worker that runs core.wasm and expressions. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Jobs } from './core-worker.ts'

type Name = keyof Jobs
type Params<Job extends Name> = Parameters<Jobs[Job]>[0]
type Value<Job extends Name> = Awaited<ReturnType<Jobs[Job]>>

interface Waiting {
  resolve(value: unknown): void
  reject(error: Error): void
}

const waiting = new Map<number, Waiting>()
let worker: Worker | undefined
let lastId = 0

function run<Job extends Name>(name: Job, params: Params<Job>): Promise<Value<Job>> {
  if (worker === undefined) {
    worker = new Worker('core-worker.js', { type: 'module', name: 'core' })
    worker.onmessage = ({ data: { id, value, error } }) => {
      const job = waiting.get(id)
      waiting.delete(id)
      if (error === undefined) job?.resolve(value)
      else job?.reject(new Error(error))
    }
  }
  const id = ++lastId
  const answer = new Promise<unknown>((resolve, reject) => waiting.set(id, { resolve, reject }))
  worker.postMessage({ id, name, params })
  return answer as Promise<Value<Job>>
}

/** The answer for the present parameters; that of earlier ones while it is awaited. */
export function useCore<Job extends Name>(name: Job, params: Params<Job>) {
  const [shown, setShown] = useState<{ value?: Value<Job>; error?: string }>({})
  const wanted = JSON.stringify(params)
  const newest = useRef('')
  useEffect(() => {
    newest.current = wanted
    run(name, JSON.parse(wanted)).then(
      (value) => newest.current === wanted && setShown({ value }),
      (error: Error) => newest.current === wanted && setShown({ error: error.message }),
    )
  }, [name, wanted])
  return shown
}
