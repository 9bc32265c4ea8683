import { useEffect, useState } from 'preact/hooks'
import { ask, log } from './worker-client.ts'

/** Time of the event at or before a position; undefined until it is known. */
export function useTimeOf(position: number): number | undefined {
  const [found, setFound] = useState<{ position: number; timeMs: number }>()
  const { last, lastMs, first, firstMs } = log.value
  useEffect(() => {
    if (position === last || position === first) return
    let isGone = false
    ask('time', { position }).then(
      (timeMs) => {
        if (!isGone && timeMs !== undefined) setFound({ position, timeMs })
      },
      () => undefined,
    )
    return () => {
      isGone = true
    }
  }, [position, last, first])
  if (position === last) return lastMs
  if (position === first) return firstMs
  return found?.timeMs
}
