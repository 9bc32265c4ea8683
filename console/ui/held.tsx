/** Says on every page that an operator holds an earlier configuration in force. */
import { objectKey, objectText } from '../../src/ground/model/names.ts'
import { waitingText } from '../../src/past/explain/pin-text.ts'
import { linkTo } from '../state/location.ts'
import { useModel } from '../state/worker-client.ts'
import { ChangeLink, EventLink, ObjectLink } from './links.tsx'
import { Time } from './times.tsx'

export function Held() {
  const held = useModel('held', undefined).value
  if (held === undefined) return null
  const { pin, waiting, count } = held
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
