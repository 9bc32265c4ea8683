import type { SimulatedOutcome, SimulatedStep, Simulation } from '../../../past/simulate/index.ts'

/** Formats a simulation as one line for the request, one for each step, and one for the outcome. */
export function simulationText({ request, steps, outcome, undecided }: Simulation): string[] {
  const { id, method, scheme, host, path, query, port } = request
  const target = `${scheme}://${host}${path}${query === undefined ? '' : `?${query}`}`
  const { gateway, listener, route, rule, verdict } = outcome
  return [
    `${method} ${target}${port === undefined ? '' : ` on port ${port}`}${id === undefined ? '' : ` (${id})`}`,
    ...(listener === undefined ? [] : [`  listener ${listener} of Gateway ${gateway}`]),
    ...(route === undefined ? [] : [`  rule ${rule} of ${route}`]),
    ...steps.map((step) => `  ${stepText(step)}`),
    `  ${outcomeText(outcome)}`,
    ...(verdict === 'undecided' ? [] : undecided.map((reason) => `  undecided: ${reason}`)),
  ]
}

function stepText({ step, from, verdict, basis, reason, status }: SimulatedStep): string {
  const objects = from.map(({ object, generation }) =>
    generation === undefined ? object : `${object} (generation ${generation})`,
  )
  const answer = verdict === 'answer' && status !== undefined ? `answers ${status}` : verdict
  const why = reason === undefined ? '' : `: ${reason}`
  return `${step} of ${objects.join(', ')}: ${answer}${basis === 'computed' ? '' : `, ${basis}`}${why}`
}

function outcomeText({ verdict, status, reason, backend, provider }: SimulatedOutcome): string {
  const why = reason === undefined ? '' : `: ${reason}`
  if (verdict === 'undecided') return `undecided${why}`
  if (verdict === 'answer') return `answers ${status}${why}`
  const to =
    backend === undefined ? '' : ` to ${backend}${provider === undefined ? '' : ` (${provider})`}`
  return `forwards${to}${status === undefined ? '' : `, recorded status ${status}`}`
}
