-- Requests with a pause of a millisecond after each answer, as of customers who poll thousands of times a second and not as fast as
-- a server answers.
function delay()
  return math.random(0, 2)
end
