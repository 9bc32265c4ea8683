import { waitingText } from '../../../src/past/explain/pin-text.ts'
import { place } from '../../state/location.ts'
import { mayAct } from '../../state/served.ts'
import { useModel } from '../../state/worker-client.ts'
import { ActionForm } from '../../ui/action-form.tsx'
import { CountTable } from '../../ui/count-table.tsx'
import { DecideForm } from '../../ui/decide-form.tsx'
import { DiffLines } from '../../ui/diff-lines.tsx'
import { EventLink, ObjectLink } from '../../ui/links.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import { Time } from '../../ui/times.tsx'
import type { Answer } from '../../worker/protocol.ts'

/**
 * The manifests that wait, compared with those in force: held changes with the requests that they would change, and
 * what takes effect when the pin is lifted.
 */
export function HeldPage() {
  const shown = useModel('waiting', undefined)
  return (
    <Content shown={{ ...shown, value: shown.value ?? null }} what="what waits">
      {(held) => (
        <article>
          <header class="title">
            <h1>{mayAct() ? 'Roll back & hold' : 'What waits'}</h1>
          </header>
          {held === null && !shown.isBusy && (
            <Empty>Nothing waits: no change is held, and no pin is set.</Empty>
          )}
          {held?.changes.map((change) => (
            <HeldChange key={change.position} {...change} />
          ))}
          {held !== null && held.unjudged > 0 && (
            <section aria-label="Not judged yet">
              <h2>Not judged yet</h2>
              <Compared objects={held.unjudgedObjects} count={held.unjudged} />
            </section>
          )}
          {held?.pin !== undefined && (
            <section aria-label="Held by the pin">
              <h2>Held by the pin</h2>
              {held.count === 0 && <Empty>Nothing waits: no manifest has changed since.</Empty>}
              <Compared objects={held.waiting} count={held.count} />
            </section>
          )}
          {mayAct() && held !== null && held.changes.length + held.unjudged > 0 && (
            <ActionForm
              action="approve-change"
              title="Approve everything"
              toOptions={(given) => ({ ...given, emergency: true })}
            >
              <p>
                For an emergency: all changes that are held, rejected or not judged take effect.
              </p>
            </ActionForm>
          )}
          {mayAct() && <HoldForms isHeld={held?.pin !== undefined} />}
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

type Waits = NonNullable<Answer<'waiting'>>
type WaitingRow = Waits['waiting'][number]

function Compared({ objects, count }: { objects: readonly WaitingRow[]; count: number }) {
  return (
    <>
      {objects.map((one) => (
        <Waiting key={one.object} {...one} />
      ))}
      {count > objects.length && (
        <p class="quiet">
          {objects.length} of {count} are compared.
        </p>
      )}
    </>
  )
}

function HeldChange({ position, since, objects, count, ...judged }: Waits['changes'][number]) {
  const { unmet, groups, sample, rejected } = judged
  return (
    <section class="change" aria-label={`Change ${position}`}>
      <h2>
        Change {position} <span class="quiet">{rejected === undefined ? 'held' : 'rejected'}</span>
      </h2>
      <p>
        Since <Time time={since} />. <EventLink position={position} />
      </p>
      {rejected !== undefined && (
        <p>
          Rejected by {rejected.author}: {rejected.reason}. It waits until its manifests change.
        </p>
      )}
      <ul>
        {unmet.map(({ condition, gateway, message }) => (
          <li key={condition + gateway}>
            <code>{condition}</code>: {message}
          </li>
        ))}
      </ul>
      {groups.length > 0 && (
        <CountTable
          title={`Requests that change ${position} affects`}
          columns={['Today', 'With the change', 'Because', 'For example', 'Requests']}
          names={4}
          rows={groups.map(({ from, to, cause, examples, count }) => [
            from,
            to,
            cause,
            examples.join(', '),
            count,
          ])}
          none=""
        />
      )}
      {sample.limits !== undefined && <p class="quiet">Not shown: {sample.limits}</p>}
      {rejected === undefined && <DecideForm position={position} />}
      <Compared objects={objects} count={count} />
    </section>
  )
}

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
