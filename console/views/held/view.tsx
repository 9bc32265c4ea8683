import { waitingText } from '../../../src/past/explain/pin-text.ts'
import { place } from '../../state/location.ts'
import { mayAct } from '../../state/served.ts'
import { useModel } from '../../state/worker-client.ts'
import { ActionForm } from '../../ui/action-form.tsx'
import { DiffLines } from '../../ui/diff-lines.tsx'
import { ObjectLink } from '../../ui/links.tsx'
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
            <h1>{mayAct() ? 'Roll back & hold' : 'What waits'}</h1>
          </header>
          {mayAct() && <HoldForms isHeld={held !== null} />}
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

const until = { name: 'until', label: 'Until', hint: 'a time, or until it is lifted' }
const only = {
  name: 'only',
  label: 'Only these objects',
  type: 'texts',
  hint: 'KIND/NAMESPACE/NAME, …',
} as const

function HoldForms({ isHeld }: { isHeld: boolean }) {
  const { position } = place.value
  const to = position === undefined ? 'last-good' : `${position}`
  return (
    <>
      {isHeld && (
        <ActionForm action="lift" title="Lift the pin">
          <p>Everything that waits takes effect.</p>
        </ActionForm>
      )}
      <ActionForm
        key={to}
        action="rollback"
        title="Roll back"
        fields={[
          { name: 'to', label: 'To', value: to, hint: 'position, time or last-good' },
          only,
          until,
          { name: 'untilChanged', label: 'Until its manifest changes', type: 'flag' },
        ]}
      >
        <p>An earlier configuration is put in force. Later changes of manifests wait.</p>
      </ActionForm>
      <ActionForm action="freeze" title="Freeze" fields={[only, until]}>
        <p>The configuration that is in force stays. Later changes of manifests wait.</p>
      </ActionForm>
    </>
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
      <DiffLines lines={lines} />
    </section>
  )
}
