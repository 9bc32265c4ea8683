import { waitingText } from '../../../src/past/explain/pin-text.ts'
import { useModel } from '../../state/worker-client.ts'
import { ObjectLink } from '../../ui/links.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import type { Answer } from '../../worker/protocol.ts'

/** What takes effect when the pin is lifted: the manifests that wait, compared with those in force. */
export function HeldPage() {
  const shown = useModel('waiting', undefined)
  return (
    <Content shown={{ ...shown, value: shown.value ?? null }} what="what waits">
      {(held) => (
        <article>
          <header class="title">
            <h1>What waits for the end of the pin</h1>
          </header>
          {held === null && !shown.isBusy && <Empty>No pin is set at this moment.</Empty>}
          {held?.count === 0 && <Empty>Nothing waits: no manifest has changed since.</Empty>}
          {held?.waiting.map((one) => (
            <Waiting key={one.object} {...one} />
          ))}
          {held !== null && held.count > held.waiting.length && (
            <p class="quiet">
              {held.waiting.length} of {held.count} are compared.
            </p>
          )}
        </article>
      )}
    </Content>
  )
}

type WaitingRow = NonNullable<Answer<'waiting'>>['waiting'][number]

function Waiting({ object, lines, problems, ...generations }: WaitingRow) {
  return (
    <section class="card status-diff">
      <h2>
        <ObjectLink object={object} /> <span class="quiet">{waitingText(generations)}</span>
      </h2>
      {problems.length > 0 && (
        <ul>
          {problems.map(({ path, message }) => (
            <li key={path + message}>
              <code>{path}</code>: {message}
            </li>
          ))}
        </ul>
      )}
      {lines.length > 0 && (
        <Scroll label="Lines">
          <pre>
            {lines.map(({ mark, text }, at) => {
              const line = `${mark} ${text}`
              if (mark === '-') return <del key={at}>{line}</del>
              return mark === '+' ? <ins key={at}>{line}</ins> : <span key={at}>{line}</span>
            })}
          </pre>
        </Scroll>
      )}
    </section>
  )
}
