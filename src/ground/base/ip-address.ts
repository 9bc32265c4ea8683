/** Recognizes IP addresses as `node:net` does, but in browsers, too. */

const octet = '(?:\\d|[1-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5])'
const ipv4 = new RegExp(`^${octet}(?:\\.${octet}){3}$`)

export const isIpv4 = (text: string): boolean => text.length <= 15 && ipv4.test(text)

/** With or without a zone (`fe80::1%eth0`). */
export function isIpv6(text: string): boolean {
  const [address = '', zone, ...rest] = text.split('%')
  if (rest.length > 0 || (zone !== undefined && !/^[0-9a-z-.:]+$/i.test(zone))) return false
  if (address.length > 45) return false
  const [head = '', tail, ...others] = address.split('::')
  if (others.length > 0) return false
  const groups = [...groupsOf(head), ...groupsOf(tail ?? '')]
  const last = groups.at(-1) ?? ''
  const isMixed = last.includes('.') && (tail === undefined || tail !== '')
  const hex = isMixed ? groups.slice(0, -1) : groups
  if (!hex.every((group) => /^[0-9a-f]{1,4}$/i.test(group)) || (isMixed && !isIpv4(last))) {
    return false
  }
  const count = hex.length + (isMixed ? 2 : 0)
  return tail === undefined ? count === 8 : count < 8
}

/** Whether a text is an IP address without a zone, or a CIDR. */
export function isAddressRange(text: string): boolean {
  const [address = '', bits = '0', ...rest] = text.split('/')
  if (rest.length > 0 || address.includes('%') || !/^\d{1,3}$/.test(bits)) return false
  return isIpv4(address) ? Number(bits) <= 32 : isIpv6(address) && Number(bits) <= 128
}

const groupsOf = (part: string): readonly string[] => (part === '' ? [] : part.split(':'))
