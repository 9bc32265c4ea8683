/** Quantities of Kubernetes (apimachinery, resource.Quantity), as far as sizes need them. */

const form =
  /^([0-9]*\.?[0-9]+|[0-9]+\.)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e[+-]?[0-9]+|E[+-]?[0-9]+)?$/
const decimal = ['k', 'M', 'G', 'T', 'P', 'E']
const binary = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']

function scaleOf(unit: string): number {
  if (unit === '') return 1
  if (unit === 'm') return 1e-3
  if (decimal.includes(unit)) return 1000 ** (decimal.indexOf(unit) + 1)
  if (binary.includes(unit)) return 1024 ** (binary.indexOf(unit) + 1)
  return 10 ** Number(unit.slice(1))
}

/** Undefined where it is no quantity. */
function quantity(given: string | number): number | undefined {
  const [, digits, unit = ''] = form.exec(String(given)) ?? []
  return digits === undefined ? undefined : Number(digits) * scaleOf(unit)
}

/** Whole mebibytes; undefined where it is no quantity. */
export function memoryMib(given: string | number): number | undefined {
  const bytes = quantity(given)
  return bytes === undefined ? undefined : Math.floor(bytes / 1024 ** 2)
}

/** Processors, rounded up; undefined where it is no positive quantity. */
export function wholeProcessors(given: string | number): number | undefined {
  const count = quantity(given)
  return count === undefined || count <= 0 ? undefined : Math.ceil(count)
}
