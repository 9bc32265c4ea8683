/** Approves or rejects a held change, for people who may act, at the newest moment. */
import { place } from '../state/location.ts'
import { mayAct } from '../state/served.ts'
import { ActionForm } from './action-form.tsx'

interface DecideFormProps {
  /** Position of the held change. */
  readonly position: number
  /** Whether the form opens with a click. */
  readonly isFolded?: true
}

export function DecideForm({ position, isFolded }: DecideFormProps) {
  const { view, position: shown } = place.value
  if (!mayAct() || shown !== undefined) return null
  // The page of what waits has the form itself.
  if (isFolded && view === 'held') return null
  const form = (
    <ActionForm
      action={[
        ['approve-change', 'Approve'],
        ['reject-change', 'Reject'],
      ]}
      title={`Decide on change ${position}`}
      toOptions={(given) => ({ ...given, position: `${position}` })}
    />
  )
  if (!isFolded) return form
  return (
    <details>
      <summary>Approve or reject change {position}</summary>
      {form}
    </details>
  )
}
