/** A view whose code is loaded when it is first shown. */
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Failure, Loading } from '../ui/states.tsx'

export function later(load: () => Promise<ComponentType>): ComponentType {
  let loaded: ComponentType | undefined
  return function Later() {
    const [error, setError] = useState<string>()
    const [, setLoaded] = useState(loaded !== undefined)
    useEffect(() => {
      if (loaded !== undefined) return
      load().then(
        (component) => {
          loaded = component
          setLoaded(true)
        },
        (reason: Error) => setError(reason.message),
      )
    }, [])
    if (error !== undefined) return <Failure message={`This view could not be loaded: ${error}`} />
    const View = loaded
    return View === undefined ? <Loading what="the view" /> : <View />
  }
}
