import { useEffect, useRef, useState } from 'preact/hooks'
import { EventTableRows } from '../../ui/event-rows.tsx'
import { ObjectLink } from '../../ui/links.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Empty, Loading } from '../../ui/states.tsx'
import type { ObjectAnswer } from './answer.ts'

/** The editor is loaded with the first manifest. */
export function Manifest({ manifest }: ObjectAnswer) {
  const box = useRef<HTMLDivElement>(null)
  const [problem, setProblem] = useState<string>()
  const [isReady, setReady] = useState(false)
  useEffect(() => {
    const { current } = box
    if (current === null || manifest === undefined) return
    let remove = () => {}
    let isGone = false
    import('../../ui/yaml-view.ts').then(
      ({ showYaml }) => {
        if (isGone) return
        remove = showYaml(current, manifest)
        setReady(true)
      },
      (error: Error) => setProblem(error.message),
    )
    return () => {
      isGone = true
      remove()
    }
  }, [manifest])
  if (manifest === undefined) return <Empty>No valid version exists at this moment.</Empty>
  if (problem !== undefined) return <pre class="card">{manifest}</pre>
  return (
    <section class="card" aria-label="Manifest">
      {!isReady && <Loading what="the manifest" />}
      <div class="yaml" ref={box} />
    </section>
  )
}

export function Reads({ reads }: ObjectAnswer) {
  if (reads.length === 0) return <Empty>Nothing is derived from the object at this moment.</Empty>
  return (
    <Scroll label="Details">
      <table>
        <thead>
          <tr>
            <th>Derivation</th>
            <th>Reads</th>
            <th>State</th>
          </tr>
        </thead>
        <tbody>
          {reads.map(({ stage, key, text, object, state }) => (
            <tr key={stage + key} class={state === 'does not exist' ? 'missing' : ''}>
              <td>{stage}</td>
              <td>{object === undefined ? text : <ObjectLink object={object} />}</td>
              <td>{state}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

export function Readers({ readers }: ObjectAnswer) {
  if (readers.length === 0) return <Empty>No other object is derived from this one.</Empty>
  return (
    <ul class="card list">
      {readers.map(({ object, stages }) => (
        <li key={object}>
          <ObjectLink object={object} /> <span class="quiet">{stages.join(', ')}</span>
        </li>
      ))}
    </ul>
  )
}

export function Changes({ events, earlierEvents, laterEvents }: ObjectAnswer) {
  return (
    <div class="card">
      {events.length === 0 ? (
        <Empty>No event up to this moment is about the object.</Empty>
      ) : (
        <EventTableRows events={[...events].reverse()} />
      )}
      {earlierEvents > 0 && <p class="quiet">{earlierEvents} earlier events are not listed.</p>}
      {laterEvents > 0 && (
        <p class="quiet">
          {laterEvents} later event{laterEvents === 1 ? '' : 's'} after this moment.
        </p>
      )}
    </div>
  )
}

export function Wire({ resources }: ObjectAnswer) {
  if (resources.length === 0) return <Empty>Proxies receive nothing for this object.</Empty>
  return (
    <>
      {resources.map(({ resource, version }) => (
        <section key={resource.key} class="card">
          <h2>
            <code>{resource.key}</code> <span class="quiet">version {version}</span>
          </h2>
          <Scroll label="Details">
            <pre>{JSON.stringify(resource, undefined, 2)}</pre>
          </Scroll>
        </section>
      ))}
    </>
  )
}
