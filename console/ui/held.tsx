/** Says on every page what is kept out of force: by a pin, and by `changeProtection`. */
import { objectKey, objectText } from '../../src/ground/model/names.ts'
import { waitingText } from '../../src/past/explain/pin-text.ts'
import { linkTo } from '../state/location.ts'
import { useModel } from '../state/worker-client.ts'
import type { Answer } from '../worker/protocol.ts'
import { DecideForm } from './decide-form.tsx'
import { ChangeLink, EventLink, ObjectLink } from './links.tsx'
import { Time } from './times.tsx'

type Banner = NonNullable<Answer<'held'>>

export function Held() {
  const held = useModel('held', undefined).value
  if (held === undefined) return null
  const { pin, changes, unjudged } = held
  return (
    <>
      {pin !== undefined && <Pinned {...held} pin={pin} />}
      {changes.length + unjudged > 0 && <Changes changes={changes} unjudged={unjudged} />}
    </>
  )
}

function Pinned({ pin, waiting, count }: Banner & { readonly pin: NonNullable<Banner['pin']> }) {
  return (
    <section class="notice held" aria-label="Held configuration">
      <p>
        <strong>
          {pin.only === undefined ? 'The configuration' : pin.only.map(objectText).join(', ')} of{' '}
          <EventLink position={pin.to} /> is held
        </strong>{' '}
        by {pin.author}: {pin.reason}. Since <Time time={pin.since} />,{' '}
        {pin.until === undefined ? (
          'until it is lifted'
        ) : (
          <>
            until <Time time={pin.until} />
          </>
        )}
        . <ChangeLink position={pin.position} />
      </p>
      {count > 0 && (
        <p>
          {count === 1 ? '1 object waits' : `${count} objects wait`}:{' '}
          {waiting.map((one) => (
            <span key={objectKey(one)} class="waiting">
              <ObjectLink object={objectKey(one)} /> ({waitingText(one)})
            </span>
          ))}
          {count > waiting.length && ` and ${count - waiting.length} more`}{' '}
          <a href={linkTo('held')}>Compare what waits</a>
        </p>
      )}
    </section>
  )
}

/** Number of held changes, and of objects of each, that the banner names. */
const maxNamed = 3

/** The changes that are held; each can be approved or rejected here. */
function Changes({ changes, unjudged }: Pick<Banner, 'changes' | 'unjudged'>) {
  const more = changes.length - maxNamed
  return (
    <section class="notice held" aria-label="Held changes">
      {changes.slice(0, maxNamed).map(({ position, objects, unmet, rejected }) => (
        <div key={position}>
          <p>
            <strong>
              A change of {objects.slice(0, maxNamed).map(objectText).join(', ')}
              {objects.length > maxNamed && ` and ${objects.length - maxNamed} more`}{' '}
              {rejected === undefined ? 'is held' : `was rejected by ${rejected.author}`}
            </strong>
            : {rejected?.reason ?? unmet.map(({ message }) => message).join('; ')}.{' '}
            <EventLink position={position} />
          </p>
          {rejected === undefined && <DecideForm position={position} isFolded />}
        </div>
      ))}
      <p>
        {more > 0 && `${more} more changes are held. `}
        {unjudged > 0 && `Not judged yet: ${unjudged === 1 ? '1 object' : `${unjudged} objects`}. `}
        <a href={linkTo('held')}>See what waits and why</a>
      </p>
    </section>
  )
}
