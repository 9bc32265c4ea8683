import { signal } from '@preact/signals'
import type { RateUnit } from '../../../src/engines/core/rate.ts'
import { Scroll } from '../../ui/scroll.tsx'
import { Failure } from '../../ui/states.tsx'
import { useCore } from './core-client.ts'

const limit = signal({ rate: 10, burst: 5, perSecond: 4, seconds: 12 })
const unit = signal<RateUnit>('Seconds')

const fields = [
  { name: 'rate', label: 'Requests', max: 100_000 },
  { name: 'burst', label: 'Burst', max: 100_000 },
  { name: 'perSecond', label: 'Requests sent per second', max: 10_000 },
  { name: 'seconds', label: 'Seconds', max: 60 },
] as const

export function RateLimits() {
  const { value, error } = useCore('rate', { ...limit.value, unit: unit.value })
  const { perSecond } = limit.value
  return (
    <section class="card">
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        {fields.map(({ name, label, max }) => (
          <label key={name}>
            {label}
            <input
              type="number"
              min={name === 'burst' ? 0 : 1}
              max={max}
              value={limit.value[name]}
              onInput={({ currentTarget: { valueAsNumber, max: most } }) => {
                if (!(valueAsNumber >= 0)) return
                const number = Math.min(valueAsNumber, Number(most))
                limit.value = { ...limit.value, [name]: number }
              }}
            />
          </label>
        ))}
        <label>
          per
          <select
            value={unit.value}
            onChange={({ currentTarget }) => {
              unit.value = currentTarget.value as RateUnit
            }}
          >
            <option>Seconds</option>
            <option>Minutes</option>
            <option>Hours</option>
          </select>
        </label>
      </form>
      {error !== undefined && <Failure message={error} />}
      <Scroll label="Admitted requests">
        <table id="admitted">
          <thead>
            <tr>
              <th>Second</th>
              <th>Admitted</th>
              <th>Refused with 429</th>
            </tr>
          </thead>
          <tbody>
            {value?.map((admitted, second) => (
              <tr key={second}>
                <td>{second + 1}</td>
                <td>{admitted}</td>
                <td>{perSecond - admitted}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  )
}
