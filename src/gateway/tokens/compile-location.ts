/** The compiled form of places of credentials, in which names of headers are in lower case. */
export function compileLocation<Location extends { readonly header?: { readonly name: string } }>({
  header,
  ...others
}: Location) {
  return { ...others, ...(header && { header: { ...header, name: header.name.toLowerCase() } }) }
}
